import com.rabbitmq.client.*;

class Greeter {
    public static void main(String[] arguments) throws Exception {
        var factory = new ConnectionFactory();
        factory.setUri(System.getenv().getOrDefault("AMQP_URL", "amqp://guest:guest@localhost"));
        var channel = factory.newConnection().createChannel();
        channel.queueDeclare("greeter", false, false, false, null);
        channel.queueBind("greeter", "reactor.call", "greeter.#");
        DeliverCallback greet = (tag, call) -> {
            var name = call.getEnvelope().getRoutingKey().replaceAll(".*\\.", "");
            var reply = new AMQP.BasicProperties.Builder().correlationId(call.getProperties().getCorrelationId()).build();
            channel.basicPublish("", call.getProperties().getReplyTo(), reply, ("Hello, " + name).getBytes());
        };
        channel.basicConsume("greeter", true, greet, tag -> {});
    }
}
