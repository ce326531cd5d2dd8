import static java.nio.charset.StandardCharsets.UTF_8;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.BuiltinExchangeType;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.GetResponse;
import java.util.List;
import java.util.Map;

/** Exchanges of every type, and queues with the arguments that applications use. */
final class Topology {
    private Topology() {}

    static void run() throws Exception {
        Connection connection = Checks.connect("java topology");
        for (BuiltinExchangeType type : BuiltinExchangeType.values()) {
            Checks.check("a " + type.getType() + " exchange routes", () -> routes(connection.createChannel(), type));
        }
        Checks.check("exchanges are bound to exchanges", () -> exchangeToExchange(connection.createChannel()));
        Checks.check("an alternate exchange takes what has no route", () -> alternate(connection.createChannel()));
        Checks.check("what expires is dead-lettered", () -> deadLetters(connection.createChannel()));
        Checks.check("a message's own expiration counts", () -> expiration(connection.createChannel()));
        Checks.check("priorities come first", () -> priorities(connection.createChannel()));
        Checks.check("a quorum queue counts deliveries", () -> quorum(connection.createChannel()));
        Checks.check("declaring passively tells the counts", () -> passive(connection.createChannel()));
        Checks.check("queues are purged and deleted", () -> purge(connection.createChannel()));
        connection.close();
    }

    private static String text(Channel channel, String queue) throws Exception {
        GetResponse got = channel.basicGet(queue, true);
        return got == null ? null : new String(got.getBody(), UTF_8);
    }

    private static void routes(Channel channel, BuiltinExchangeType type) throws Exception {
        String exchange = "java." + type.getType(), queue = channel.queueDeclare().getQueue();
        channel.exchangeDeclare(exchange, type, true, false, Map.of());
        channel.queueBind(queue, exchange, "order.#", Map.of("x-match", "all", "kind", "order"));
        channel.queueBind(queue, exchange, "order.new");
        AMQP.BasicProperties order = new AMQP.BasicProperties.Builder().headers(Map.of("kind", "order", "n", 1)).build();
        channel.basicPublish(exchange, "order.new", order, "yes".getBytes(UTF_8));
        channel.basicPublish(exchange, "invoice", null, "no".getBytes(UTF_8));
        Checks.same("yes", Checks.eventually("the message", () -> text(channel, queue)));
        // A fanout takes all, and a binding without arguments has every header it asks for.
        boolean both = type == BuiltinExchangeType.FANOUT || type == BuiltinExchangeType.HEADERS;
        Checks.same(both ? "no" : null, text(channel, queue));
        channel.queueUnbind(queue, exchange, "order.new");
        channel.exchangeDelete(exchange);
        channel.close();
    }

    private static void exchangeToExchange(Channel channel) throws Exception {
        String queue = channel.queueDeclare().getQueue();
        channel.exchangeDeclare("java.inner", "fanout", false, true, true, null);
        channel.exchangeBind("java.inner", "amq.topic", "java.#");
        channel.queueBind(queue, "java.inner", "");
        channel.basicPublish("amq.topic", "java.here", null, "through".getBytes(UTF_8));
        Checks.same("through", Checks.eventually("the message", () -> text(channel, queue)));
        channel.exchangeUnbind("java.inner", "amq.topic", "java.#");
        channel.close();
    }

    private static void alternate(Channel channel) throws Exception {
        String queue = channel.queueDeclare().getQueue();
        channel.queueBind(queue, "amq.fanout", "");
        channel.exchangeDeclare("java.strict", "direct", false, true, Map.of("alternate-exchange", "amq.fanout"));
        channel.basicPublish("java.strict", "nobody", true, null, "rest".getBytes(UTF_8));
        Checks.same("rest", Checks.eventually("the message", () -> text(channel, queue)));
        channel.exchangeDelete("java.strict");
        channel.close();
    }

    private static void deadLetters(Channel channel) throws Exception {
        String dead = channel.queueDeclare().getQueue();
        String queue = channel.queueDeclare("", false, true, true, Map.of(
            "x-message-ttl", 50, "x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead)).getQueue();
        channel.basicPublish("", queue, null, "late".getBytes(UTF_8));
        GetResponse letter = Checks.eventually("the dead letter", () -> channel.basicGet(dead, true));
        Map<String, Object> headers = letter.getProps().getHeaders();
        Map<?, ?> death = (Map<?, ?>) ((List<?>) headers.get("x-death")).get(0);
        Checks.same("expired " + queue + " 1", death.get("reason") + " " + death.get("queue") + " " + death.get("count"));
        Checks.same("expired", headers.get("x-first-death-reason").toString());
        Checks.same(queue, headers.get("x-first-death-queue").toString());
        channel.close();
    }

    private static void expiration(Channel channel) throws Exception {
        String queue = channel.queueDeclare().getQueue();
        channel.basicPublish("", queue, new AMQP.BasicProperties.Builder().expiration("50").build(), new byte[1]);
        Checks.eventually("it expires", () -> channel.messageCount(queue) == 0 ? true : null);
        channel.close();
    }

    private static void priorities(Channel channel) throws Exception {
        String queue = channel.queueDeclare("", false, true, true, Map.of("x-max-priority", 5)).getQueue();
        for (int priority : new int[] {1, 5, 0, 3}) {
            AMQP.BasicProperties properties = new AMQP.BasicProperties.Builder().priority(priority).build();
            channel.basicPublish("", queue, properties, ("" + priority).getBytes(UTF_8));
        }
        for (String expected : List.of("5", "3", "1", "0")) {
            Checks.same(expected, Checks.eventually("a message", () -> text(channel, queue)));
        }
        channel.close();
    }

    private static void quorum(Channel channel) throws Exception {
        channel.queueDeclare("java.quorum", true, false, false, Map.of("x-queue-type", "quorum", "x-delivery-limit", 2));
        channel.confirmSelect();
        channel.basicPublish("", "java.quorum", null, "kept".getBytes(UTF_8));
        Checks.that(channel.waitForConfirms(Checks.DEADLINE.toMillis()), "nacked");
        for (long times = 0; times <= 2; times++) {
            GetResponse got = Checks.eventually("the message", () -> channel.basicGet("java.quorum", false));
            Map<String, Object> headers = got.getProps().getHeaders();
            Object count = headers == null ? null : headers.get("x-delivery-count");
            Checks.same("" + times, "" + count);
            channel.basicNack(got.getEnvelope().getDeliveryTag(), false, true);
        }
        Checks.eventually("the third return drops it", () -> channel.messageCount("java.quorum") == 0 ? true : null);
        channel.queueDelete("java.quorum");
        channel.close();
    }

    private static void passive(Channel channel) throws Exception {
        String queue = channel.queueDeclare().getQueue();
        channel.confirmSelect();
        channel.basicPublish("", queue, null, new byte[1]);
        channel.waitForConfirmsOrDie(Checks.DEADLINE.toMillis());
        AMQP.Queue.DeclareOk counts = channel.queueDeclarePassive(queue);
        Checks.same(queue + " 1 0", counts.getQueue() + " " + counts.getMessageCount() + " " + counts.getConsumerCount());
        channel.exchangeDeclarePassive("amq.direct");
        channel.close();
    }

    private static void purge(Channel channel) throws Exception {
        String queue = channel.queueDeclare("", false, false, false, null).getQueue();
        channel.confirmSelect();
        channel.basicPublish("", queue, null, new byte[1]);
        channel.waitForConfirmsOrDie(Checks.DEADLINE.toMillis());
        Checks.same(1, channel.queuePurge(queue).getMessageCount());
        Checks.same(0, channel.queueDelete(queue, true, true).getMessageCount());
        channel.close();
    }
}
