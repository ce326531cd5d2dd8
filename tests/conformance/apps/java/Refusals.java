import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AuthenticationFailureException;
import com.rabbitmq.client.BuiltinExchangeType;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** What is refused, with the code and text that applications look at. */
final class Refusals {
    private Refusals() {}

    static void run() throws Exception {
        Connection connection = Checks.connect("java refusals");
        Checks.check("404 for a queue that is not there", () -> Checks.refused(404, "NOT_FOUND - no queue 'java.none' in vhost '/'", () ->
            connection.createChannel().queueDeclarePassive("java.none")));
        Checks.check("404 for an exchange that is not there", () -> Checks.refused(404, "NOT_FOUND - no exchange 'java.none' in vhost '/'", () ->
            connection.createChannel().exchangeDeclarePassive("java.none")));
        Checks.check("404 for publishing to no exchange, at the next call", () -> publishToNothing(connection.createChannel()));
        Checks.check("406 for another queue of that name", () -> otherQueue(connection.createChannel()));
        Checks.check("406 for another exchange of that name", () -> Checks.refused(406, "inequivalent arg 'type' for exchange 'amq.topic' in vhost '/': received 'direct' but current is 'topic'", () ->
            connection.createChannel().exchangeDeclare("amq.topic", BuiltinExchangeType.DIRECT, true)));
        Checks.check("406 for an unknown delivery tag", () -> unknownTag(connection.createChannel()));
        Checks.check("406 for deleting what is in use", () -> inUse(connection.createChannel()));
        Checks.check("406 for mixing transactions and confirms", () -> mixed(connection.createChannel()));
        Checks.check("403 for a reserved name", () -> Checks.refused(403, "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'", () ->
            connection.createChannel().queueDeclare("amq.mine", false, false, false, null)));
        Checks.check("403 for publishing to the default exchange by binding", () -> Checks.refused(403, "ACCESS_REFUSED - operation not permitted on the default exchange", () -> {
            Channel channel = connection.createChannel();
            channel.queueBind(channel.queueDeclare().getQueue(), "", "key");
        }));
        Checks.check("405 for somebody else's exclusive queue", () -> exclusive(connection));
        Checks.check("403 for a wrong password", Refusals::wrongPassword);
        Checks.check("530 for a virtual host that is not there", Refusals::wrongHost);
        Checks.check("the connection outlives its closed channels", () -> {
            Checks.that(connection.isOpen(), "it is closed");
            connection.createChannel().close();
        });
        connection.close();
    }

    private static void publishToNothing(Channel channel) throws Exception {
        BlockingQueue<ShutdownSignalException> closed = new LinkedBlockingQueue<>();
        channel.addShutdownListener(closed::add);
        channel.basicPublish("java.none", "key", null, new byte[1]);
        ShutdownSignalException signal = Checks.next(closed, "the channel closes");
        Checks.same("404 NOT_FOUND - no exchange 'java.none' in vhost '/'", Checks.said(signal.getReason()));
        AMQP.Channel.Close close = (AMQP.Channel.Close) signal.getReason();
        Checks.same("60 40", close.getClassId() + " " + close.getMethodId());
        Checks.that(!signal.isHardError() && !signal.isInitiatedByApplication(), "taken for something else");
    }

    private static void otherQueue(Channel channel) throws Exception {
        String queue = channel.queueDeclare("java.other", false, false, true, null).getQueue();
        Checks.refused(406, "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'java.other' in vhost '/': received 'true' but current is 'false'", () ->
            channel.getConnection().createChannel().queueDeclare(queue, true, false, true, null));
        Checks.refused(406, "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'java.other' in vhost '/': received the value '5' of type 'signedint' but current is none", () ->
            channel.getConnection().createChannel().queueDeclare(queue, false, false, true, Map.of("x-message-ttl", 5)));
        channel.queueDelete(queue);
        channel.close();
    }

    private static void unknownTag(Channel channel) throws Exception {
        BlockingQueue<ShutdownSignalException> closed = new LinkedBlockingQueue<>();
        channel.addShutdownListener(closed::add);
        channel.basicAck(7, false);
        Checks.same("406 PRECONDITION_FAILED - unknown delivery tag 7", Checks.said(Checks.next(closed, "the channel closes").getReason()));
    }

    private static void inUse(Channel channel) throws Exception {
        String queue = channel.queueDeclare().getQueue();
        channel.confirmSelect();
        channel.basicPublish("", queue, null, new byte[1]);
        channel.waitForConfirmsOrDie(Checks.DEADLINE.toMillis());
        Checks.refused(406, "PRECONDITION_FAILED - queue '" + queue + "' in vhost '/' not empty", () -> channel.queueDelete(queue, false, true));
    }

    private static void mixed(Channel channel) throws Exception {
        channel.txSelect();
        Checks.refused(406, "PRECONDITION_FAILED - cannot switch from tx to confirm mode", channel::confirmSelect);
    }

    private static void exclusive(Connection connection) throws Exception {
        Connection other = Checks.connect("java other");
        Channel mine = connection.createChannel();
        String queue = mine.queueDeclare().getQueue();
        Checks.refused(405, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '" + queue + "' in vhost '/'", () ->
            other.createChannel().queueDeclarePassive(queue));
        mine.close();
        other.close();
    }

    private static void wrongPassword() throws Exception {
        ConnectionFactory factory = Checks.factory();
        factory.setPassword("wrong");
        try {
            factory.newConnection().close();
            throw new AssertionError("let in");
        } catch (AuthenticationFailureException refused) {
            Checks.that(refused.getMessage().startsWith("ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN."), refused.getMessage());
        }
    }

    private static void wrongHost() throws Exception {
        ConnectionFactory factory = Checks.factory();
        factory.setVirtualHost("nowhere");
        try {
            factory.newConnection().close();
            throw new AssertionError("let in");
        } catch (IOException refused) {
            ShutdownSignalException signal = (ShutdownSignalException) refused.getCause();
            Checks.same("530 NOT_ALLOWED - vhost nowhere not found", Checks.said(signal.getReason()));
        }
    }
}
