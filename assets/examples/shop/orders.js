// orders: answers POST /orders and GET /orders/ID over the bus. It asks catalog over HTTP, calls payments over the bus and tells
// everyone who cares by an event. No telemetry library: reactor records the calls, and these log lines.
"use strict";
const amqp = require("amqplib");
const { randomUUID } = require("node:crypto");

const GATEWAY = process.env.REACTOR_GATEWAY_URL ?? "http://localhost:16000";
const AMQP = process.env.AMQP_URL ?? "amqp://guest:guest@localhost";
const ORDERS_KEPT = 500;
const PAYMENT_MS = 8000;

const orders = new Map();
let stopping = false;
let stop = () => process.exit(0);
process.on("SIGTERM", () => {
  stopping = true;
  stop();
});

/** One line of JSON a log record; reactor reads level, msg and trace_id. */
function log(level, msg, call, fields = {}) {
  const traceparent = call?.properties.headers?.traceparent;
  const [, trace_id, span_id] = typeof traceparent === "string" ? traceparent.split("-") : [];
  console.log(JSON.stringify({ level, msg, trace_id, span_id, ...fields }));
}

class Refusal extends Error {
  constructor(status, title) {
    super(title);
    this.status = status;
  }
}

/** Calls over the bus: published to `reactor.call`, answered to this channel's own reply address. */
class Caller {
  static async open(channel) {
    const caller = new Caller();
    caller.channel = channel;
    caller.waiting = new Map();
    await channel.consume("amq.rabbitmq.reply-to", (reply) => caller.settle(reply?.properties.correlationId, reply), { noAck: true });
    channel.on("return", ({ properties }) => caller.settle(properties.correlationId, null));
    return caller;
  }

  /** `traceparent` is handed on as it came: a callee with a telemetry library joins the trace by it. */
  call(key, body, traceparent, ms) {
    const correlationId = randomUUID();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.settle(correlationId, null), ms);
      this.waiting.set(correlationId, { resolve, reject, timer, key });
      this.channel.publish("reactor.call", key, Buffer.from(JSON.stringify(body)), {
        replyTo: "amq.rabbitmq.reply-to",
        correlationId,
        contentType: "application/json",
        expiration: String(ms),
        mandatory: true,
        headers: traceparent ? { traceparent } : {},
      });
    });
  }

  settle(correlationId, reply) {
    const waiting = this.waiting.get(correlationId);
    if (!waiting) return;
    this.waiting.delete(correlationId);
    clearTimeout(waiting.timer);
    if (reply === null) waiting.reject(new Refusal(503, `${waiting.key} does not answer`));
    else waiting.resolve({ status: Number(reply.properties.headers?.[":status"] ?? 200), body: JSON.parse(reply.content) });
  }
}

async function findProduct(id, traceparent) {
  const headers = { "user-agent": "orders", ...(traceparent ? { traceparent } : {}) };
  const response = await fetch(`${GATEWAY}/catalog/products/${encodeURIComponent(id)}`, { headers });
  if (response.status === 404) throw new Refusal(404, `the shop does not sell ${id}`);
  if (!response.ok) throw new Refusal(503, `catalog answered ${response.status}`);
  return response.json();
}

function readOrder(content) {
  let wanted;
  try {
    wanted = JSON.parse(content);
  } catch {
    throw new Refusal(400, "the body is not JSON");
  }
  const { product, quantity } = wanted ?? {};
  if (typeof product !== "string" || !product) throw new Refusal(400, "product is missing");
  if (!Number.isInteger(quantity) || quantity < 1 || quantity > 20) throw new Refusal(400, "quantity must be 1 to 20");
  return { product, quantity };
}

async function place(call, { channel, caller }) {
  const { product: id, quantity } = readOrder(call.content);
  const traceparent = call.properties.headers?.traceparent;
  const found = await findProduct(id, traceparent);
  const order = { id: randomUUID().slice(0, 8), product: id, quantity, total_cents: found.price_cents * quantity };
  const charge = { order: order.id, amount_cents: order.total_cents };
  const payment = await caller.call("payments.charge", charge, traceparent, PAYMENT_MS);
  if (payment.status === 402) throw new Refusal(402, "the card was declined");
  if (payment.status !== 200) throw new Refusal(502, `payments answered ${payment.status}`);
  order.receipt = payment.body.receipt;
  orders.set(order.id, order);
  if (orders.size > ORDERS_KEPT) orders.delete(orders.keys().next().value);
  const event = { contentType: "application/json", persistent: true, messageId: order.id };
  channel.publish("reactor.event", "order.placed", Buffer.from(JSON.stringify(order)), event);
  log("info", "order placed", call, { order: order.id, product: id, total_cents: order.total_cents });
  return { status: 201, body: order };
}

function show(call) {
  const order = orders.get(call.fields.routingKey.split(".")[1]);
  if (!order) throw new Refusal(404, "this instance knows no such order");
  return { status: 200, body: order };
}

async function answer(call, bus) {
  const method = call.properties.headers?.[":method"] ?? "POST";
  const isCollection = call.fields.routingKey === "orders";
  try {
    if (method === "POST" && isCollection) return await place(call, bus);
    if (method === "GET" && !isCollection) return show(call);
    throw new Refusal(405, `${method} is not for this path`);
  } catch (error) {
    const status = error instanceof Refusal ? error.status : 500;
    log(status >= 500 ? "error" : "warn", error.message, call, { status });
    return { status, body: { title: error.message, status } };
  }
}

async function serve() {
  const connection = await amqp.connect(AMQP);
  const closed = new Promise((resolve) => connection.once("close", resolve));
  connection.on("error", (error) => log("error", `bus: ${error.message}`));
  const channel = await connection.createChannel();
  const caller = await Caller.open(channel);
  await channel.assertQueue("orders", { durable: false });
  await channel.bindQueue("orders", "reactor.call", "orders.#");
  // One order at a time and instance: with one open delivery it is plain which call led to which message.
  await channel.prefetch(1);
  let current = Promise.resolve();
  const { consumerTag } = await channel.consume("orders", (call) => {
    if (call === null) connection.close();
    else current = handle(call, { channel, caller }).catch((error) => log("error", `not answered: ${error.message}`, call));
  });
  log("info", "taking orders");
  stop = async () => {
    await channel.cancel(consumerTag);
    await current; // the order at hand is finished first
    await connection.close();
  };
  await closed;
  stop = () => process.exit(0);
}

async function handle(call, bus) {
  const { status, body } = await answer(call, bus);
  bus.channel.sendToQueue(call.properties.replyTo, Buffer.from(JSON.stringify(body)), {
    correlationId: call.properties.correlationId,
    contentType: status < 400 ? "application/json" : "application/problem+json",
    headers: { ":status": status },
  });
  bus.channel.ack(call);
}

(async () => {
  while (!stopping) {
    await serve().catch((error) => log("error", `bus: ${error.message}`));
    if (!stopping) await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  process.exit(0);
})();
