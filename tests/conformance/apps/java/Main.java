/** A Java application on RabbitMQ's own client. The broker is in AMQP_URL and MANAGEMENT_URL. */
public final class Main {
    public static void main(String[] arguments) throws Exception {
        Publishing.run();
        Consuming.run();
        Topology.run();
        Refusals.run();
        Outages.run();
        System.exit(0);
    }
}
