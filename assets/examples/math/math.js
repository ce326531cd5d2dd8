// A worker behind a queue: answers /math/OPERATION?… with JSON, whichever of its instances is free.
//
//   /math/add?a=1&b=2   subtract, multiply, divide   →  { "result": 3 }
//   /math/factor?n=360                               →  { "result": [2, 2, 2, 3, 3, 5] }
"use strict";
const amqp = require("amqplib");

const FACTOR_MAX = 1e14;

const operations = {
  add: ({ a, b }) => number(a) + number(b),
  subtract: ({ a, b }) => number(a) - number(b),
  multiply: ({ a, b }) => number(a) * number(b),
  divide: ({ a, b }) => {
    if (number(b) === 0) throw new Mistake(400, "b is 0: nothing can be divided by it");
    return number(a) / number(b);
  },
  factor: ({ n }) => factor(number(n)),
};

class Mistake extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

function number(text) {
  const value = Number(text);
  if (text === undefined || text === "" || !Number.isFinite(value)) throw new Mistake(400, `"${text}" is not a number`);
  return value;
}

function factor(n) {
  if (!Number.isInteger(n) || n < 2 || n > FACTOR_MAX) throw new Mistake(400, `n must be a whole number from 2 to ${FACTOR_MAX}`);
  const factors = [];
  for (let divisor = 2; divisor * divisor <= n; divisor += divisor === 2 ? 1 : 2) {
    while (n % divisor === 0) {
      factors.push(divisor);
      n /= divisor;
    }
  }
  if (n > 1) factors.push(n);
  return factors;
}

/** The answer to a call: status and body. `:path` is the request's target as the client sent it. */
function answer(routingKey, headers) {
  const name = routingKey.split(".")[1];
  const operation = Object.hasOwn(operations, name ?? "") ? operations[name] : undefined;
  try {
    if (!operation) throw new Mistake(404, `math knows ${Object.keys(operations).join(", ")}`);
    const query = new URL(headers[":path"] ?? "/", "http://math").searchParams;
    return { status: 200, body: { result: operation(Object.fromEntries(query)) } };
  } catch (error) {
    if (!(error instanceof Mistake)) throw error;
    return { status: error.status, body: { title: "That cannot be computed", status: error.status, detail: error.message } };
  }
}

async function main() {
  const connection = await amqp.connect(process.env.AMQP_URL ?? "amqp://guest:guest@localhost");
  let stopping = false;
  connection.on("close", () => process.exit(stopping ? 0 : 1)); // reactor starts it again
  const channel = await connection.createChannel();
  await channel.assertQueue("math", { durable: false });
  await channel.bindQueue("math", "reactor.call", "math.#");
  await channel.prefetch(4);
  await channel.consume("math", (call) => {
    if (call === null) process.exit(1); // the queue was deleted
    const { status, body } = answer(call.fields.routingKey, call.properties.headers);
    console.log(`${status < 400 ? "INFO" : "WARN"} ${call.fields.routingKey} ${status} ${JSON.stringify(body.result ?? body.detail)}`);
    channel.sendToQueue(call.properties.replyTo, Buffer.from(JSON.stringify(body)), {
      correlationId: call.properties.correlationId,
      contentType: status < 400 ? "application/json" : "application/problem+json",
      headers: { ":status": status },
    });
    channel.ack(call);
  });
  process.once("SIGTERM", () => {
    stopping = true;
    connection.close();
  });
  console.log("INFO waiting for sums");
}

main().catch((error) => {
  console.error(`ERROR ${error.message}`);
  process.exit(1);
});
