import static java.nio.charset.StandardCharsets.UTF_8;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AlreadyClosedException;
import com.rabbitmq.client.BlockedListener;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.DefaultConsumer;
import com.rabbitmq.client.Envelope;
import com.rabbitmq.client.Recoverable;
import com.rabbitmq.client.RecoveryListener;
import com.rabbitmq.client.ShutdownSignalException;
import com.rabbitmq.client.impl.recovery.AutorecoveringConnection;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Base64;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** What an application lives through: heartbeats, a broker that is full, a connection that an operator closes. */
final class Outages {
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    private Outages() {}

    static void run() throws Exception {
        Checks.check("heartbeats keep an idle connection open", Outages::heartbeats);
        Checks.check("a full broker tells that it blocks, and when it does no more", Outages::blocked);
        Checks.check("a closed connection comes back with its topology and consumers", Outages::recovery);
    }

    private static void heartbeats() throws Exception {
        ConnectionFactory factory = Checks.factory();
        factory.setRequestedHeartbeat(1);
        Connection connection = factory.newConnection("java heartbeats");
        BlockingQueue<ShutdownSignalException> closed = new LinkedBlockingQueue<>();
        connection.addShutdownListener(closed::add);
        Checks.same(1, connection.getHeartbeat());
        Checks.same(null, closed.poll(5, TimeUnit.SECONDS));
        connection.close();
    }

    /** Runs ALARM_ON and ALARM_OFF when there are such commands, else fills the broker. */
    private static void blocked() throws Exception {
        Connection told = Checks.connect("java blocked");
        BlockingQueue<String> news = new LinkedBlockingQueue<>();
        told.addBlockedListener(new BlockedListener() {
            @Override
            public void handleBlocked(String reason) {
                news.add("blocked: " + reason);
            }

            @Override
            public void handleUnblocked() {
                news.add("unblocked");
            }
        });
        Channel channel = told.createChannel();
        String queue = channel.queueDeclare("java.filled", false, false, false, null).getQueue();
        if (System.getenv("ALARM_ON") != null) {
            shell("ALARM_ON");
        }
        Thread filler = new Thread(() -> {
            try {
                while (news.isEmpty()) {
                    channel.basicPublish("", queue, null, new byte[100_000]);
                    Thread.sleep(1);
                }
            } catch (IOException | InterruptedException | AlreadyClosedException end) {
                System.out.println("filling ended: " + end);
            }
        });
        filler.start();
        Checks.same("blocked: low on memory", Checks.eventually("the alarm", news::peek));
        if (System.getenv("ALARM_OFF") != null) {
            shell("ALARM_OFF");
        }
        Connection cleaning = Checks.connect("java cleaning");
        cleaning.createChannel().queueDelete(queue);
        Checks.eventually("the end of the alarm", () -> news.contains("unblocked") ? true : null);
        filler.join(Checks.DEADLINE.toMillis());
        cleaning.close();
        told.close();
    }

    private static void shell(String name) throws Exception {
        Process process = new ProcessBuilder("sh", "-c", System.getenv(name)).inheritIO().start();
        Checks.same(0, process.waitFor());
    }

    private static void recovery() throws Exception {
        ConnectionFactory factory = Checks.factory();
        factory.setNetworkRecoveryInterval(200);
        Connection connection = factory.newConnection("java recovery");
        Channel channel = connection.createChannel();
        BlockingQueue<String> bodies = new LinkedBlockingQueue<>(), events = new LinkedBlockingQueue<>();
        BlockingQueue<String> names = new LinkedBlockingQueue<>();
        connection.addShutdownListener(signal -> events.add(Checks.said(signal.getReason())));
        ((AutorecoveringConnection) connection).addQueueRecoveryListener((before, after) -> names.add(before + " " + after));
        ((Recoverable) connection).addRecoveryListener(new RecoveryListener() {
            @Override
            public void handleRecovery(Recoverable recovered) {
                events.add("recovered");
            }

            @Override
            public void handleRecoveryStarted(Recoverable recovering) {}
        });
        channel.exchangeDeclare("java.lasting", "topic", false, true, null);
        String queue = channel.queueDeclare().getQueue();
        channel.queueBind(queue, "java.lasting", "#");
        channel.basicQos(10);
        channel.confirmSelect();
        channel.basicConsume(queue, false, "java.consumer", new DefaultConsumer(channel) {
            @Override
            public void handleDelivery(String tag, Envelope envelope, AMQP.BasicProperties properties, byte[] body) throws IOException {
                getChannel().basicAck(envelope.getDeliveryTag(), false);
                bodies.add(new String(body, UTF_8));
            }
        });
        channel.basicPublish("java.lasting", "any", null, "before".getBytes(UTF_8));
        Checks.same("before", Checks.next(bodies, "a message before"));

        closeByOperator("java recovery");
        Checks.same("320 CONNECTION_FORCED - somebody must go", Checks.next(events, "the connection closes"));
        Checks.same("recovered", Checks.next(events, "it is back"));
        Checks.that(Checks.next(names, "a new queue").startsWith(queue + " amq.gen-"), "the queue was not named anew");
        Checks.that(connection.isOpen() && channel.isOpen(), "not open after recovery");
        channel.basicPublish("java.lasting", "any", null, "after".getBytes(UTF_8));
        Checks.same("after", Checks.next(bodies, "a message after"));
        channel.waitForConfirmsOrDie(Checks.DEADLINE.toMillis());
        connection.close();
    }

    private static void closeByOperator(String provided) throws Exception {
        String name = Checks.eventually("the connection is listed", () -> {
            String list = http("GET", "/connections?columns=name,user_provided_name", 200);
            for (String entry : list.split("}")) {
                if (entry.contains("\"" + provided + "\"")) {
                    return entry.replaceAll(".*\"name\":\"([^\"]*)\".*", "$1");
                }
            }
            return null;
        });
        http("DELETE", "/connections/" + URLEncoder.encode(name, UTF_8).replace("+", "%20"), 204);
    }

    private static String http(String method, String path, int expected) throws Exception {
        String login = Base64.getEncoder().encodeToString("guest:guest".getBytes(UTF_8));
        HttpRequest request = HttpRequest.newBuilder(URI.create(System.getenv("MANAGEMENT_URL") + path))
            .method(method, HttpRequest.BodyPublishers.noBody())
            .headers("Authorization", "Basic " + login, "X-Reason", "somebody must go").build();
        HttpResponse<String> response = HTTP.send(request, HttpResponse.BodyHandlers.ofString());
        Checks.same(expected, response.statusCode());
        return response.body();
    }
}
