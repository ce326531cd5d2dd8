import com.rabbitmq.client.AlreadyClosedException;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Method;
import com.rabbitmq.client.ShutdownSignalException;
import com.rabbitmq.client.AMQP;
import java.io.IOException;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;

/** What the checks share: a line each, waiting with a deadline, and connections as the client makes them by default. */
final class Checks {
    static final Duration DEADLINE = Duration.ofSeconds(30);

    interface Body {
        void run() throws Exception;
    }

    private Checks() {}

    /** Runs the body and prints `ok NAME` or `not ok NAME # why`. */
    static void check(String name, Body body) {
        try {
            body.run();
            System.out.println("ok " + name);
        } catch (Throwable error) {
            error.printStackTrace();
            String why = (error.getClass().getSimpleName() + ": " + error.getMessage()).replaceAll("\\s+", " ");
            System.out.println("not ok " + name + " # " + why.substring(0, Math.min(300, why.length())));
        }
        System.out.flush();
    }

    static ConnectionFactory factory() throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(System.getenv("AMQP_URL"));
        return factory;
    }

    static Connection connect(String name) throws Exception {
        return factory().newConnection(name);
    }

    static void same(Object expected, Object got) {
        if (!Objects.equals(expected, got)) {
            throw new AssertionError("expected " + expected + ", got " + got);
        }
    }

    static void that(boolean condition, String otherwise) {
        if (!condition) {
            throw new AssertionError(otherwise);
        }
    }

    /** The next of what arrives. */
    static <T> T next(BlockingQueue<T> arriving, String what) throws InterruptedException {
        T value = arriving.poll(DEADLINE.toSeconds(), TimeUnit.SECONDS);
        that(value != null, "not within " + DEADLINE.toSeconds() + " s: " + what);
        return value;
    }

    /** The first value that is not null. */
    static <T> T eventually(String what, Callable<T> value) throws Exception {
        long until = System.nanoTime() + DEADLINE.toNanos();
        while (true) {
            T got = value.call();
            if (got != null) {
                return got;
            }
            that(System.nanoTime() < until, "not within " + DEADLINE.toSeconds() + " s: " + what);
            Thread.sleep(50);
        }
    }

    /** The body is refused: the channel or connection closes with this code and a text that has this part. */
    static void refused(int code, String part, Body body) throws Exception {
        ShutdownSignalException signal;
        try {
            body.run();
            throw new AssertionError("was not refused with " + code);
        } catch (AlreadyClosedException closed) {
            signal = closed;
        } catch (IOException error) {
            that(error.getCause() instanceof ShutdownSignalException, error.toString());
            signal = (ShutdownSignalException) error.getCause();
        }
        String said = said(signal.getReason());
        that(said.startsWith(code + " ") && said.contains(part), "refused with \"" + said + "\", not " + code + " " + part);
    }

    /** Code and text of what closed a channel or connection. */
    static String said(Method reason) {
        if (reason instanceof AMQP.Channel.Close close) {
            return close.getReplyCode() + " " + close.getReplyText();
        }
        if (reason instanceof AMQP.Connection.Close close) {
            return close.getReplyCode() + " " + close.getReplyText();
        }
        return String.valueOf(reason);
    }
}
