// mailer: writes to the customer when an order was placed and when it is on its way. It only listens to events, in one queue
// that all its instances share.
"use strict";
const amqp = require("amqplib");

const AMQP = process.env.AMQP_URL ?? "amqp://guest:guest@localhost";
let stopping = false;
let stop = () => process.exit(0);
process.on("SIGTERM", () => {
  stopping = true;
  stop();
});

const letters = {
  "order.placed": (order) => `Thank you for order ${order.id}: ${order.quantity} x ${order.product}`,
  "order.shipped": (order) => `Order ${order.id} is on its way`,
};

async function serve() {
  const connection = await amqp.connect(AMQP);
  let open = true;
  const closed = new Promise((resolve) => connection.once("close", resolve)).then(() => (open = false));
  connection.on("error", (error) => console.error(`ERROR bus: ${error.message}`));
  stop = () => connection.close(); // letters not yet sent go back to the queue
  const channel = await connection.createChannel();
  await channel.assertQueue("mailer.event", { durable: true });
  for (const event of Object.keys(letters)) await channel.bindQueue("mailer.event", "reactor.event", event);
  await channel.prefetch(10);
  await channel.consume("mailer.event", (message) => {
    if (message === null) return connection.close();
    const letter = letters[message.fields.routingKey](JSON.parse(message.content));
    // Handing a letter to the post takes a moment.
    setTimeout(() => {
      if (stopping || !open) return;
      console.log(`INFO sent: ${letter}`);
      channel.ack(message);
    }, 5 + Math.random() * 25);
  });
  console.log("INFO pen and paper ready");
  await closed;
  stop = () => process.exit(0);
}

(async () => {
  while (!stopping) {
    await serve().catch((error) => console.error(`ERROR bus: ${error.message}`));
    if (!stopping) await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  process.exit(0);
})();
