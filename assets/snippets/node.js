const amqp = require("amqplib");

(async () => {
  const connection = await amqp.connect(process.env.AMQP_URL ?? "amqp://guest:guest@localhost");
  const channel = await connection.createChannel();
  await channel.assertQueue("greeter", { durable: false });
  await channel.bindQueue("greeter", "reactor.call", "greeter.#");
  const greet = ({ fields, properties }) => {
    const reply = `Hello, ${fields.routingKey.split(".").at(-1)}`;
    channel.sendToQueue(properties.replyTo, Buffer.from(reply), { correlationId: properties.correlationId });
  };
  await channel.consume("greeter", greet, { noAck: true });
})();
