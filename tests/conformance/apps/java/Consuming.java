import static java.nio.charset.StandardCharsets.UTF_8;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.DefaultConsumer;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.Envelope;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.RpcClient;
import com.rabbitmq.client.StringRpcServer;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeoutException;

/** Consumers with prefetch and acks, what is given back, cancelling, remote calls. */
final class Consuming {
    private Consuming() {}

    static void run() throws Exception {
        Connection connection = Checks.connect("java consuming");
        Checks.check("prefetch holds back until acks", () -> prefetch(connection.createChannel()));
        Checks.check("one ack for many", () -> multiple(connection.createChannel()));
        Checks.check("nack and reject give back, redelivered and in order", () -> requeue(connection.createChannel()));
        Checks.check("what a closed channel held goes to the next", () -> closedChannel(connection));
        Checks.check("basic.recover delivers again", () -> recover(connection.createChannel()));
        Checks.check("a consumer is cancelled by its client", () -> cancelByClient(connection.createChannel()));
        Checks.check("a consumer is told that its queue is gone", () -> cancelByServer(connection.createChannel()));
        Checks.check("an exclusive consumer is alone", () -> exclusive(connection));
        Checks.check("RpcClient calls RpcServer over direct reply-to", () -> calls(connection));
        Checks.check("RpcClient stops waiting for who does not answer", () -> noAnswer(connection));
        connection.close();
    }

    /** A DefaultConsumer whose deliveries and cancellations can be waited for. */
    private static final class Inbox extends DefaultConsumer {
        final BlockingQueue<Delivery> deliveries = new LinkedBlockingQueue<>();
        final BlockingQueue<String> ends = new LinkedBlockingQueue<>();

        Inbox(Channel channel) {
            super(channel);
        }

        @Override
        public void handleDelivery(String tag, Envelope envelope, AMQP.BasicProperties properties, byte[] body) {
            deliveries.add(new Delivery(envelope, properties, body));
        }

        @Override
        public void handleCancelOk(String tag) {
            ends.add("cancel-ok " + tag);
        }

        @Override
        public void handleCancel(String tag) {
            ends.add("cancel " + tag);
        }

        Delivery next() throws InterruptedException {
            return Checks.next(deliveries, "a delivery");
        }

        String nextText() throws InterruptedException {
            Delivery delivery = next();
            return new String(delivery.getBody(), UTF_8) + (delivery.getEnvelope().isRedeliver() ? " again" : "");
        }
    }

    /** An exclusive queue that outlives its consumers. */
    private static String queue(Channel channel) throws IOException {
        return channel.queueDeclare("", false, true, false, null).getQueue();
    }

    private static String filled(Channel channel, int messages) throws IOException {
        String queue = queue(channel);
        for (int number = 0; number < messages; number++) {
            channel.basicPublish("", queue, null, ("" + number).getBytes(UTF_8));
        }
        return queue;
    }

    private static void prefetch(Channel channel) throws Exception {
        String queue = filled(channel, 10);
        channel.basicQos(3);
        Inbox inbox = new Inbox(channel);
        channel.basicConsume(queue, false, inbox);
        for (int number = 0; number < 10; number++) {
            Delivery delivery = inbox.next();
            Checks.same("" + number, new String(delivery.getBody(), UTF_8));
            // Three are out; what is not taken from the queue is counted there.
            int left = Math.max(0, 10 - number - 3);
            Checks.eventually(left + " messages are left", () -> channel.messageCount(queue) == left ? true : null);
            channel.basicAck(delivery.getEnvelope().getDeliveryTag(), false);
        }
        channel.close();
    }

    private static void multiple(Channel channel) throws Exception {
        String queue = filled(channel, 20);
        Inbox inbox = new Inbox(channel);
        channel.basicConsume(queue, false, inbox);
        for (int number = 0; number < 19; number++) {
            inbox.next();
        }
        long tag = inbox.next().getEnvelope().getDeliveryTag();
        Checks.same(20L, tag);
        channel.basicAck(tag, true);
        channel.basicRecover(true);
        Checks.same(0L, channel.messageCount(queue));
        channel.close();
    }

    private static void requeue(Channel channel) throws Exception {
        String queue = filled(channel, 3);
        channel.basicGet(queue, false);
        channel.basicGet(queue, false);
        channel.basicNack(2, true, true);
        GetResponse again = channel.basicGet(queue, false);
        Checks.same("0", new String(again.getBody(), UTF_8));
        Checks.that(again.getEnvelope().isRedeliver(), "not marked as redelivered");
        channel.basicReject(again.getEnvelope().getDeliveryTag(), true);
        Inbox inbox = new Inbox(channel);
        channel.basicConsume(queue, true, inbox);
        Checks.same("0 again", inbox.nextText());
        Checks.same("1 again", inbox.nextText());
        Checks.same("2", inbox.nextText());
        channel.close();
    }

    private static void closedChannel(Connection connection) throws Exception {
        Channel first = connection.createChannel(), second = connection.createChannel();
        String queue = filled(first, 2);
        Inbox inbox = new Inbox(first);
        first.basicConsume(queue, false, inbox);
        inbox.next();
        inbox.next();
        first.close();
        Inbox next = new Inbox(second);
        second.basicConsume(queue, true, next);
        Checks.same("0 again", next.nextText());
        Checks.same("1 again", next.nextText());
        second.close();
    }

    private static void recover(Channel channel) throws Exception {
        String queue = filled(channel, 1);
        Inbox inbox = new Inbox(channel);
        channel.basicConsume(queue, false, inbox);
        Checks.same("0", inbox.nextText());
        channel.basicRecover();
        Checks.same("0 again", inbox.nextText());
        channel.close();
    }

    private static void cancelByClient(Channel channel) throws Exception {
        String queue = queue(channel);
        Inbox inbox = new Inbox(channel);
        Checks.same("mine", channel.basicConsume(queue, true, "mine", inbox));
        Checks.same(1L, channel.consumerCount(queue));
        channel.basicCancel("mine");
        Checks.same("cancel-ok mine", Checks.next(inbox.ends, "the end of the consumer"));
        Checks.same(0L, channel.consumerCount(queue));
        channel.close();
    }

    private static void cancelByServer(Channel channel) throws Exception {
        String queue = channel.queueDeclare("", false, false, false, null).getQueue();
        Inbox inbox = new Inbox(channel);
        String tag = channel.basicConsume(queue, true, inbox);
        Checks.that(tag.startsWith("amq.ctag-"), "the consumer is called " + tag);
        channel.queueDelete(queue);
        Checks.same("cancel " + tag, Checks.next(inbox.ends, "the end of the consumer"));
        Checks.that(channel.isOpen(), "the channel is closed");
        channel.close();
    }

    private static void exclusive(Connection connection) throws Exception {
        Channel first = connection.createChannel(), second = connection.createChannel();
        String queue = first.queueDeclare().getQueue();
        first.basicConsume(queue, true, "", false, true, null, new Inbox(first));
        Checks.refused(403, "ACCESS_REFUSED - queue '" + queue + "' in vhost '/' in exclusive use", () ->
            second.basicConsume(queue, true, new Inbox(second)));
        first.close();
    }

    private static void calls(Connection connection) throws Exception {
        Channel serving = connection.createChannel(), calling = connection.createChannel();
        String queue = serving.queueDeclare().getQueue();
        StringRpcServer server = new StringRpcServer(serving, queue) {
            @Override
            public String handleStringCall(String request, AMQP.BasicProperties replyProperties) {
                return request.toUpperCase();
            }
        };
        Thread loop = new Thread(() -> {
            try {
                server.mainloop();
            } catch (Exception error) {
                error.printStackTrace();
            }
        });
        loop.start();
        RpcClient client = new RpcClient(calling, "", queue, (int) Checks.DEADLINE.toMillis());
        for (int number = 0; number < 50; number++) {
            Checks.same("CALL " + number, client.stringCall("call " + number));
        }
        client.close();
        server.terminateMainloop();
        loop.join(Checks.DEADLINE.toMillis());
        calling.close();
    }

    private static void noAnswer(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = channel.queueDeclare("", false, true, true, Map.of("x-message-ttl", 60_000)).getQueue();
        RpcClient client = new RpcClient(channel, "", queue, 300);
        try {
            client.stringCall("nobody is there");
            throw new AssertionError("somebody answered");
        } catch (TimeoutException expected) {
            GetResponse call = channel.basicGet(queue, true);
            Checks.that(call.getProps().getReplyTo().startsWith("amq.rabbitmq.reply-to."), call.getProps().getReplyTo());
        }
        channel.close();
    }
}
