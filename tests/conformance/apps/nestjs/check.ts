// Starts the shop and uses it. AMQP_URL is the broker; MANAGEMENT_URL its management API, when there is one.
import assert from "node:assert/strict";
import { ClientProxyFactory, Transport, type ClientProxy } from "@nestjs/microservices";
import { firstValueFrom, lastValueFrom, toArray } from "rxjs";
import { parcelOptions, seen, shopOptions, startListener, startShop } from "./shop.js";

const url = process.env.AMQP_URL!;
const management = process.env.MANAGEMENT_URL;
const DEADLINE_MS = 30_000;

async function waitUntil(what: string, condition: () => boolean | Promise<boolean>) {
  const until = Date.now() + DEADLINE_MS;
  while (!(await condition())) {
    assert.ok(Date.now() < until, `not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function ask(path: string, method = "GET") {
  const authorization = `Basic ${Buffer.from("guest:guest").toString("base64")}`;
  return fetch(`${management}${path}`, { method, headers: { authorization } });
}

let shop = await startShop(url);
const listener = await startListener(url);
const client: ClientProxy = ClientProxyFactory.create({ transport: Transport.RMQ, options: shopOptions(url) });
const parcels: ClientProxy = ClientProxyFactory.create({ transport: Transport.RMQ, options: parcelOptions(url) });
const send = <T>(pattern: unknown, data: unknown) => client.send<T>(pattern, data);

const checks: Record<string, () => Promise<void | string>> = {
  async "requests are answered"() {
    assert.equal(await firstValueFrom(send("sum", [1, 2, 3])), 6);
  },
  async "a hundred requests at once are answered to whom they belong"() {
    const asked = Array.from({ length: 100 }, (_, number) => firstValueFrom(send<number>("sum", [number, number])));
    assert.deepEqual(await Promise.all(asked), Array.from({ length: 100 }, (_, number) => 2 * number));
  },
  async "an answer of many parts arrives in order"() {
    assert.deepEqual(await lastValueFrom(send<number>({ cmd: "count" }, 20).pipe(toArray())), Array.from({ length: 20 }, (_, n) => n));
  },
  async "errors come back"() {
    await assert.rejects(firstValueFrom(send("refuse", "sold out")), (error) => JSON.stringify(error).includes("sold out") || String(error).includes("sold out"));
  },
  async "events arrive once and in order"() {
    for (let number = 0; number < 50; number++) await lastValueFrom(client.emit("order.created", String(number)), { defaultValue: 0 });
    await waitUntil("fifty orders", () => seen.orders.length >= 50);
    assert.deepEqual(seen.orders, Array.from({ length: 50 }, (_, number) => String(number)));
  },
  async "events by wildcard reach the pattern that matches"() {
    for (const [pattern, id] of [["parcel.7.sent", "seven"], ["parcel.8.lost", "eight"], ["refund.a.b", "nine"], ["parcel.9.sent", "ten"]]) {
      await lastValueFrom(parcels.emit(pattern, id), { defaultValue: 0 });
    }
    await waitUntil("the last note", () => seen.listened.includes("one ten"));
    assert.deepEqual(seen.listened, ["one seven", "all nine", "one ten"]);
  },
  async "what was not acked comes again to the next instance"() {
    await lastValueFrom(client.emit("never.acked", "a"), { defaultValue: 0 });
    await waitUntil("the first try", () => seen.unacked.length === 1);
    await shop.close();
    shop = await startShop(url);
    await waitUntil("the second try", () => seen.unacked.length === 2);
    assert.deepEqual(seen.unacked, ["a false", "a true"]);
  },
  async "the queue shows its consumer in the management API"() {
    if (!management) return "no management API";
    await waitUntil("consumer_details", async () => {
      const queue = (await (await ask("/queues/%2F/shop")).json()) as { consumer_details?: unknown[] };
      return queue.consumer_details?.length === 1;
    });
  },
  async "connections closed by the operator come back"() {
    if (!management) return "no management API";
    let names: string[] = [];
    await waitUntil("the connections are listed", async () => {
      names = ((await (await ask("/connections")).json()) as { name: string }[]).map(({ name }) => name);
      return names.length >= 4;
    });
    for (const name of names) assert.ok((await ask(`/connections/${encodeURIComponent(name)}`, "DELETE")).ok);
    await waitUntil("an answer again", async () => {
      const answer = firstValueFrom(send<number>("sum", [20, 22])).catch(() => 0);
      return (await Promise.race([answer, new Promise<number>((resolve) => setTimeout(() => resolve(0), 2000))])) === 42;
    });
  },
};

for (const [name, check] of Object.entries(checks)) {
  try {
    const skipped = await check();
    console.log(skipped ? `skip ${name} # ${skipped}` : `ok ${name}`);
  } catch (error) {
    console.error(error);
    console.log(`not ok ${name} # ${String(error).replaceAll("\n", " ").slice(0, 300)}`);
  }
}
await Promise.allSettled([client.close(), parcels.close(), shop.close(), listener.close()]);
process.exit(0);
