// The patterns of RabbitMQ's tutorials through amqplib. Usage: node patterns.js AMQP_URL PATTERN
// Exits with 0 when the pattern held, with 1 and the error when it did not or hung.
"use strict";

const assert = require("node:assert/strict");
const { once, EventEmitter } = require("node:events");
const amqp = require("amqplib");

const [url, pattern] = process.argv.slice(2);
const quorum = { durable: true, arguments: { "x-queue-type": "quorum" } };
const open = [];

/** One connection with one channel, and what its consumer got. */
class Peer {
  got = [];
  #arrived = new EventEmitter();

  static async connect({ prefetch, confirms = false } = {}) {
    const peer = new Peer();
    peer.connection = await amqp.connect(url);
    open.push(peer.connection);
    peer.channel = await (confirms ? peer.connection.createConfirmChannel() : peer.connection.createChannel());
    if (prefetch) await peer.channel.prefetch(prefetch);
    return peer;
  }

  consume(queue, options = {}) {
    const keep = (message) => {
      this.got.push(message);
      this.#arrived.emit("message");
    };
    return this.channel.consume(queue, keep, options);
  }

  async temporaryQueue(exchange, ...keys) {
    const { queue } = await this.channel.assertQueue("", { exclusive: true });
    for (const key of keys) await this.channel.bindQueue(queue, exchange, key);
    await this.consume(queue, { noAck: true });
    return queue;
  }

  /** Waits until the condition holds for what has arrived; the timer at the end ends what never does. */
  async until(condition) {
    while (!condition(this.got)) await once(this.#arrived, "message");
  }

  bodies() {
    return this.got.map((message) => message.content.toString());
  }

  async ready(queue) {
    return (await this.channel.checkQueue(queue)).messageCount;
  }
}

const text = (body) => Buffer.from(body);
const peers = (count, options) => Promise.all(Array.from({ length: count }, () => Peer.connect(options)));

const patterns = {
  async work_queues() {
    const [sender] = await peers(1);
    const [one, two] = await peers(2, { prefetch: 1 });
    for (const peer of [sender, one, two]) await peer.channel.assertQueue("task_queue", quorum);
    await one.consume("task_queue");
    await two.consume("task_queue");
    for (const body of "123") sender.channel.sendToQueue("task_queue", text(body), { persistent: true });
    await Promise.all([one, two].map((peer) => peer.until((got) => got.length === 1)));
    assert.deepEqual([...one.bodies(), ...two.bodies()].sort(), ["1", "2"]);
    assert.equal(await sender.ready("task_queue"), 1, "prefetch 1 leaves the third in the queue");
    // Only who acks gets more.
    two.channel.ack(two.got[0]);
    await two.until((got) => got.length === 2);
    assert.deepEqual([two.bodies()[1], two.got[1].fields.redelivered, two.got[1].properties.deliveryMode], ["3", false, 2]);
    // What a worker that goes away had not acked is another's, marked as seen before.
    await one.connection.close();
    two.channel.ack(two.got[1]);
    await two.until((got) => got.length === 3);
    assert.deepEqual([two.bodies()[2], two.got[2].fields.redelivered], [one.bodies()[0], true]);
    two.channel.ack(two.got[2]);
    await two.channel.close();
    assert.equal(await sender.ready("task_queue"), 0);
  },

  async publish_subscribe() {
    const [sender, one, two] = await peers(3);
    await sender.channel.assertExchange("logs", "fanout", { durable: false });
    sender.channel.publish("logs", "", text("nobody listens yet"));
    await sender.channel.checkExchange("logs");
    const queue = await one.temporaryQueue("logs", "");
    await two.temporaryQueue("logs", "any key");
    for (const body of ["first", "second"]) sender.channel.publish("logs", "", text(body));
    for (const peer of [one, two]) {
      await peer.until((got) => got.length === 2);
      assert.deepEqual(peer.bodies(), ["first", "second"]);
    }
    await one.connection.close();
    sender.channel.on("error", () => {});
    await assert.rejects(sender.channel.checkQueue(queue), { code: 404 });
  },

  async routing() {
    const [sender, errors, most] = await peers(3);
    await sender.channel.assertExchange("direct_logs", "direct", { durable: false });
    await errors.temporaryQueue("direct_logs", "error");
    await most.temporaryQueue("direct_logs", "info", "warning", "error");
    for (const severity of ["debug", "info", "warning", "error"]) sender.channel.publish("direct_logs", severity, text(severity));
    await errors.until((got) => got.length === 1);
    await most.until((got) => got.length === 3);
    assert.deepEqual(errors.bodies(), ["error"]);
    assert.deepEqual(most.bodies(), ["info", "warning", "error"]);
    assert.deepEqual(most.got.map((message) => message.fields.routingKey), most.bodies());
  },

  async topics() {
    const bindings = { all: ["#"], kernel: ["kern.*"], critical: ["*.critical"], both: ["kern.*", "*.critical"], deep: ["a.#.z"] };
    const lasts = { all: "a.last.z", kernel: "kern.last", critical: "last.critical", both: "last.critical", deep: "a.last.z" };
    const [sender] = await peers(1);
    await sender.channel.assertExchange("topic_logs", "topic", { durable: false });
    const subscribers = {};
    for (const [name, keys] of Object.entries(bindings)) {
      subscribers[name] = await Peer.connect();
      await subscribers[name].temporaryQueue("topic_logs", ...keys);
    }
    const keys = ["kern.critical", "kern.info", "cron.critical", "kern.a.b", "a.z", "a.b.c.z", "kern"];
    for (const key of [...keys, "kern.last", "last.critical", "a.last.z"]) sender.channel.publish("topic_logs", key, text(key));
    const got = {};
    for (const [name, peer] of Object.entries(subscribers)) {
      await peer.until(() => peer.bodies().includes(lasts[name]));
      got[name] = peer.bodies().filter((body) => !body.includes("last"));
    }
    assert.deepEqual(got, {
      all: keys,
      kernel: ["kern.critical", "kern.info"],
      critical: ["kern.critical", "cron.critical"],
      both: ["kern.critical", "kern.info", "cron.critical"],
      deep: ["a.z", "a.b.c.z"],
    });
  },

  async rpc() {
    const [server] = await peers(1, { prefetch: 1 });
    const [client] = await peers(1);
    await server.channel.assertQueue("rpc_queue", quorum);
    await server.channel.consume("rpc_queue", (call) => {
      const { replyTo, correlationId } = call.properties;
      server.channel.sendToQueue(replyTo, text(String(Number(call.content) * 2)), { correlationId });
      server.channel.ack(call);
    });
    const own = (await client.channel.assertQueue("", { exclusive: true })).queue;
    for (const replyTo of [own, "amq.rabbitmq.reply-to"]) {
      client.got.length = 0;
      await client.consume(replyTo, { noAck: true });
      for (const number of [7, 21]) {
        client.channel.sendToQueue("rpc_queue", text(String(number)), { replyTo, correlationId: `call-${number}` });
      }
      await client.until((got) => got.length === 2);
      const answers = client.got.map((message) => [message.properties.correlationId, message.content.toString()]);
      assert.deepEqual(answers, [["call-7", "14"], ["call-21", "42"]]);
    }
  },

  async confirms_one_by_one() {
    const [sender] = await peers(1, { confirms: true });
    await sender.channel.assertQueue("confirmed", quorum);
    for (let number = 0; number < 20; number++) {
      sender.channel.sendToQueue("confirmed", text(String(number)), { mandatory: true });
      await sender.channel.waitForConfirms();
    }
    assert.equal(await sender.ready("confirmed"), 20);
    // A return comes before the confirm of the same message.
    const order = [];
    sender.channel.on("return", (message) => order.push(message.fields.replyCode));
    sender.channel.publish("", "nowhere", text("lost"), { mandatory: true }, (error) => order.push(error ?? "confirmed"));
    await sender.channel.waitForConfirms();
    assert.deepEqual(order, [312, "confirmed"]);
  },

  async confirms_in_batches() {
    const [sender] = await peers(1, { confirms: true });
    await sender.channel.assertQueue("batched", quorum);
    for (let batch = 1; batch <= 10; batch++) {
      for (let number = 0; number < 100; number++) sender.channel.sendToQueue("batched", text(String(number)));
      await sender.channel.waitForConfirms();
      assert.equal(await sender.ready("batched"), batch * 100);
    }
  },

  async confirms_async() {
    const [sender] = await peers(1, { confirms: true });
    await sender.channel.assertQueue("flooded", quorum);
    const confirmed = [];
    for (let number = 0; number < 1000; number++) {
      sender.channel.sendToQueue("flooded", text("x".repeat(number)), {}, (error) => confirmed.push(error ?? number));
    }
    await sender.channel.waitForConfirms();
    assert.deepEqual(confirmed, Array.from({ length: 1000 }, (_, number) => number));
    assert.equal(await sender.ready("flooded"), 1000);
  },
};

const hung = setTimeout(() => {
  console.error(`${pattern} hung`);
  process.exit(1);
}, 30_000);
patterns[pattern]()
  .then(() => Promise.all(open.map((connection) => connection.close().catch(() => {}))))
  .then(() => clearTimeout(hung))
  .catch((error) => {
    console.error(error);
    process.exit(1);
  });
