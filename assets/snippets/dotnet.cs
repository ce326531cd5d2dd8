using System.Text;
using RabbitMQ.Client;
using RabbitMQ.Client.Events;

var url = Environment.GetEnvironmentVariable("AMQP_URL") ?? "amqp://guest:guest@localhost";
await using var connection = await new ConnectionFactory { Uri = new Uri(url) }.CreateConnectionAsync();
await using var channel = await connection.CreateChannelAsync();
await channel.QueueDeclareAsync("greeter", durable: false, exclusive: false, autoDelete: false);
await channel.QueueBindAsync("greeter", "reactor.call", "greeter.#");

var consumer = new AsyncEventingBasicConsumer(channel);
consumer.ReceivedAsync += async (_, call) =>
{
    var reply = Encoding.UTF8.GetBytes($"Hello, {call.RoutingKey.Split('.')[^1]}");
    var properties = new BasicProperties { CorrelationId = call.BasicProperties.CorrelationId };
    await channel.BasicPublishAsync("", call.BasicProperties.ReplyTo!, false, properties, reply);
};
await channel.BasicConsumeAsync("greeter", autoAck: true, consumer);
await Task.Delay(Timeout.Infinite);
