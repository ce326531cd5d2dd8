import static java.nio.charset.StandardCharsets.UTF_8;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ConfirmListener;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.MessageProperties;
import com.rabbitmq.client.impl.LongStringHelper;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** Confirms, returns, properties, large bodies, transactions. */
final class Publishing {
    private Publishing() {}

    static void run() throws Exception {
        Connection connection = Checks.connect("java publishing");
        Checks.check("the server and what it can do are told", () -> handshake(connection));
        Checks.check("publishers wait for confirms", () -> waitForConfirms(connection.createChannel()));
        Checks.check("confirms reach a listener", () -> confirmListener(connection.createChannel()));
        Checks.check("what a full queue rejects is nacked", () -> nacks(connection.createChannel()));
        Checks.check("an unroutable message comes back before its confirm", () -> returns(connection.createChannel()));
        Checks.check("properties and headers of every type arrive", () -> properties(connection.createChannel()));
        Checks.check("bodies larger than a frame arrive", () -> largeBodies(connection.createChannel()));
        Checks.check("a transaction commits", () -> commit(connection.createChannel()));
        Checks.check("a transaction rolls back", () -> rollback(connection.createChannel()));
        connection.close();
    }

    private static void handshake(Connection connection) {
        Map<String, Object> server = connection.getServerProperties();
        Checks.same("RabbitMQ", server.get("product").toString());
        Map<?, ?> can = (Map<?, ?>) server.get("capabilities");
        for (String capability : List.of("publisher_confirms", "basic.nack", "consumer_cancel_notify", "connection.blocked")) {
            Checks.same(true, can.get(capability));
        }
        Checks.same(60, connection.getHeartbeat());
        Checks.same(131072, connection.getFrameMax());
        Checks.same(2047, connection.getChannelMax());
    }

    private static void waitForConfirms(Channel channel) throws Exception {
        String queue = channel.queueDeclare().getQueue();
        channel.confirmSelect();
        for (int number = 0; number < 500; number++) {
            Checks.same(number + 1L, channel.getNextPublishSeqNo());
            channel.basicPublish("", queue, MessageProperties.PERSISTENT_TEXT_PLAIN, ("" + number).getBytes(UTF_8));
        }
        Checks.that(channel.waitForConfirms(Checks.DEADLINE.toMillis()), "nacked");
        channel.waitForConfirmsOrDie(Checks.DEADLINE.toMillis());
        Checks.same(500L, channel.messageCount(queue));
        channel.close();
    }

    private static void confirmListener(Channel channel) throws Exception {
        String queue = channel.queueDeclare().getQueue();
        TreeSet<Long> open = new TreeSet<>();
        BlockingQueue<String> done = new LinkedBlockingQueue<>();
        channel.confirmSelect();
        channel.addConfirmListener(new ConfirmListener() {
            @Override
            public void handleAck(long tag, boolean multiple) {
                synchronized (open) {
                    (multiple ? open.headSet(tag, true) : open.subSet(tag, true, tag, true)).clear();
                    if (open.isEmpty()) {
                        done.add("all");
                    }
                }
            }

            @Override
            public void handleNack(long tag, boolean multiple) {
                done.add("nack " + tag);
            }
        });
        synchronized (open) {
            for (int number = 0; number < 1000; number++) {
                open.add(channel.getNextPublishSeqNo());
                channel.basicPublish("", queue, null, new byte[100]);
            }
        }
        Checks.same("all", Checks.next(done, "all confirms"));
        channel.close();
    }

    private static void nacks(Channel channel) throws Exception {
        Map<String, Object> full = Map.of("x-max-length", 1, "x-overflow", "reject-publish");
        String queue = channel.queueDeclare("", false, true, true, full).getQueue();
        channel.confirmSelect();
        channel.basicPublish("", queue, null, new byte[1]);
        Checks.that(channel.waitForConfirms(Checks.DEADLINE.toMillis()), "the first was nacked");
        channel.basicPublish("", queue, null, new byte[1]);
        Checks.that(!channel.waitForConfirms(Checks.DEADLINE.toMillis()), "the second was acked");
        Checks.same(1L, channel.messageCount(queue));
        channel.close();
    }

    private static void returns(Channel channel) throws Exception {
        BlockingQueue<String> order = new LinkedBlockingQueue<>();
        channel.confirmSelect();
        channel.addReturnListener((code, text, exchange, key, properties, body) ->
            order.add(String.join(" ", "" + code, text, exchange, key, properties.getMessageId(), new String(body, UTF_8))));
        channel.addConfirmListener((tag, multiple) -> order.add("ack " + tag), (tag, multiple) -> order.add("nack " + tag));
        AMQP.BasicProperties named = new AMQP.BasicProperties.Builder().messageId("m1").build();
        channel.basicPublish("amq.direct", "nowhere", true, named, "lost".getBytes(UTF_8));
        Checks.same("312 NO_ROUTE amq.direct nowhere m1 lost", Checks.next(order, "the return"));
        Checks.same("ack 1", Checks.next(order, "the confirm"));
        channel.close();
    }

    private static void properties(Channel channel) throws Exception {
        String queue = channel.queueDeclare().getQueue();
        Map<String, Object> headers = Map.of(
            "text", "grüße", "int", 7, "long", 5_000_000_000L, "bool", true, "double", 2.5, "bytes", new byte[] {0, -1},
            "time", new Date(1_700_000_000_000L), "list", List.of(1, "two"), "table", Map.of("deep", Map.of("er", 1)));
        AMQP.BasicProperties sent = new AMQP.BasicProperties.Builder()
            .contentType("text/plain").contentEncoding("utf-8").headers(headers).deliveryMode(2).priority(3)
            .correlationId("c").replyTo("r").expiration("60000").messageId("m").timestamp(new Date(1_700_000_000_000L))
            .type("t").userId("guest").appId("a").build();
        channel.basicPublish("", queue, sent, "body".getBytes(UTF_8));
        GetResponse got = Checks.eventually("the message", () -> channel.basicGet(queue, true));
        AMQP.BasicProperties back = got.getProps();
        Checks.same("body", new String(got.getBody(), UTF_8));
        Checks.same(sent.builder().headers(null).build().toString(), back.builder().headers(null).build().toString());
        Checks.same(headers.keySet(), back.getHeaders().keySet());
        Checks.same(LongStringHelper.asLongString("grüße"), back.getHeaders().get("text"));
        Checks.same(5_000_000_000L, back.getHeaders().get("long"));
        Checks.same(List.of(1, LongStringHelper.asLongString("two")), back.getHeaders().get("list"));
        Checks.same(Map.of("deep", Map.of("er", 1)), back.getHeaders().get("table"));
        Checks.that(Arrays.equals(new byte[] {0, -1}, (byte[]) back.getHeaders().get("bytes")), "the bytes differ");
        channel.close();
    }

    private static void largeBodies(Channel channel) throws Exception {
        String queue = channel.queueDeclare().getQueue();
        int frame = channel.getConnection().getFrameMax() - 8;
        for (int size : new int[] {0, 1, frame - 1, frame, frame + 1, 2 * frame, 10_000_000}) {
            byte[] body = new byte[size];
            new Random(size).nextBytes(body);
            channel.basicPublish("", queue, null, body);
            GetResponse got = Checks.eventually("a body of " + size, () -> channel.basicGet(queue, true));
            Checks.that(Arrays.equals(body, got.getBody()), "a body of " + size + " differs");
        }
        channel.close();
    }

    private static void commit(Channel channel) throws Exception {
        String queue = channel.queueDeclare().getQueue();
        channel.txSelect();
        channel.basicPublish("", queue, null, new byte[1]);
        channel.basicPublish("", queue, null, new byte[1]);
        Checks.same(0L, channel.messageCount(queue));
        channel.txCommit();
        Checks.same(2L, channel.messageCount(queue));
        channel.close();
    }

    private static void rollback(Channel channel) throws Exception {
        String queue = channel.queueDeclare().getQueue();
        channel.txSelect();
        channel.basicPublish("", queue, null, new byte[1]);
        channel.txRollback();
        channel.txCommit();
        Checks.same(0L, channel.messageCount(queue));
        channel.close();
    }
}
