// The broker's pages as an operator uses them: a real reactor, real AMQP clients, a real browser.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { axe, cutTimesAndTabs, picture, root, startBrowser, startReactor, waitUntil } from "./harness.mjs";

const amqp = createRequire(join(root, "target/clients/"))("amqplib");

let reactor;
let chrome;
let base;
let client;
let channel;
before(async () => {
  [reactor, chrome] = await Promise.all([startReactor(), startBrowser()]);
  base = `http://${reactor.control}`;
  client = await connect("orders-1");
  channel = await client.createConfirmChannel();
  await channel.assertExchange("shop", "topic", { durable: true });
  for (const [queue, key] of [
    ["worker.orders", "order.placed"],
    ["mailer.event", "order.*"],
    ["parking", "none"],
  ]) {
    await channel.assertQueue(queue, { durable: true });
    await channel.bindQueue(queue, "shop", key);
  }
});
after(async () => {
  await client?.close().catch(() => {});
  await chrome?.stop();
  await reactor?.stop();
});

const connect = (name) =>
  amqp.connect(`amqp://guest:guest@${reactor.address("amqp")}`, { clientProperties: { connection_name: name } });
const path = (queue) => `queues/%2F/${queue}`;
const peek = async (queue, params = "") => (await reactor.api(`${path(queue)}/messages?count=500${params}`)).messages;

/** Fills a queue of its own with `bodies`. */
async function fill(queue, bodies, options = {}) {
  await channel.assertQueue(queue, { durable: true });
  for (const body of bodies) channel.sendToQueue(queue, Buffer.from(body), options);
  await channel.waitForConfirms();
}
const bodies = async (queue) => (await peek(queue)).map((m) => m.body).join(" ");

/** Opens a page, and fails at the end if the browser reported an error. */
async function on(url, options, work) {
  const page = await chrome.page(base + url, options);
  await work(page);
  assert.deepEqual(page.errors, []);
  await page.close();
}

test("ten thousand queues are listed, filtered, sorted and scrolled without lag", async () => {
  const declared = [];
  for (let i = 0; i < 10_000; i += 1) {
    declared.push(channel.assertQueue(`tenant-${i % 97}.q${String(i).padStart(5, "0")}`, { durable: true }));
    if (declared.length === 500) await Promise.all(declared.splice(0));
  }
  await Promise.all(declared);
  await fill("tenant-7.q09999x", ["a", "b", "c"]);
  await on("/queues", {}, async (page) => {
    await page.getByText(/10,00\d queues/).waitFor();
    await page.evaluate(() => {
      window.longTasks = [];
      new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((e) => e.duration))).observe({
        type: "longtask",
      });
    });
    await page.getByRole("button", { name: "Ready" }).click();
    await page.waitForURL(/sort=-ready/);
    await waitUntil("the fullest queue is first", async () =>
      (await page.getByRole("row").nth(1).innerText()).includes("tenant-7.q09999x"),
    );
    await page.getByLabel("Filter").fill("q0512");
    await waitUntil("ten match", async () => (await page.locator("tbody tr[tabindex]").count()) === 10);
    await page.getByLabel("Filter").fill("");
    await waitUntil("all again", async () => (await page.locator("tbody tr[tabindex]").count()) > 20);
    await page.locator(".table-scroll").evaluate((node) => node.scrollTo(0, 140_000));
    await waitUntil("rows where it was scrolled to", async () =>
      (await page.locator("tbody tr[tabindex]").count()) > 20 && (await page.locator("tbody tr.missing").count()) === 0,
    );
    assert.ok((await page.locator("tbody tr").count()) < 120, "only what is on the screen is rendered");
    const longest = await page.evaluate(() => Math.max(0, ...window.longTasks));
    assert.ok(longest < 300, `long task ${longest} ms`);
    await picture(page, "queues-10000");
  });
});

const PAGES = {
  exchanges: ["/queues?tab=exchanges", "row", /shop/],
  connections: ["/queues?tab=connections", "row", /orders-1/],
  channels: ["/queues?tab=channels", "row", /orders-1/],
  consumers: ["/queues?tab=consumers", "row", /holder/],
  messages: ["/queues?tab=messages", "textbox", /Filter/],
  policies: ["/queues?tab=policies", "button", /Make one/],
  exchange: ["/queues/-/exchanges/%2F/shop?key=order.placed", "link", /mailer\.event/],
  "default exchange": ["/queues/-/exchanges/%2F/amq.default", "heading", /Where a message would go/],
  "queue's settings": ["/queues/%2F/worker.orders?tab=settings", "region", /Consumers, bindings and settings/],
  "queue's bindings": ["/queues/%2F/worker.orders?tab=bindings", "link", /shop/],
  "queue's unacked": ["/queues/%2F/held?standing=unacked", "row", /holder/],
  users: ["/access", "row", /guest/],
  permissions: ["/access?tab=permissions", "row", /guest/],
  topics: ["/access?tab=topics", "button", /New topic permission/],
  spaces: ["/access?tab=spaces", "row", /\//],
};

describe("every page of the broker", () => {
  let holder;
  before(async () => {
    await fill("held", ["one", "two"]);
    holder = await connect("holder");
    const own = await holder.createChannel();
    await own.prefetch(1);
    await own.consume("held", () => {});
    await waitUntil("it holds one", async () => (await reactor.api(path("held"))).unacked === 1);
  });
  after(() => holder?.close().catch(() => {}));

  for (const [name, [url, role, what]] of Object.entries(PAGES))
    for (const theme of ["dark", "light"])
      test(`${name}: with nothing serious for axe in ${theme}, and narrow without sideways scrolling`, () =>
        on(url, { theme }, async (page) => {
          await page.getByRole(role, { name: what }).first().waitFor();
          assert.deepEqual(await axe(page), []);
          await picture(page, `broker-${name.replaceAll(/\W+/g, "-")}-${theme}`);
          await page.setViewportSize({ width: 390, height: 844 });
          await page.getByRole(role, { name: what }).first().waitFor();
          assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth), 0);
          assert.deepEqual(await cutTimesAndTabs(page), []);
          await picture(page, `broker-${name.replaceAll(/\W+/g, "-")}-${theme}-narrow`);
        }));
});

test("looking at messages changes nothing, and shows bodies as JSON, text and hex", async () => {
  await fill("looked", ['{"order":77157,"items":[]}', "plain"], { contentType: "application/json", headers: { tenant: "blue" } });
  await on("/queues/%2F/looked", {}, async (page) => {
    await page.getByRole("row", { name: /77157/ }).click();
    const panel = page.getByRole("complementary", { name: "Message" });
    await panel.getByText('"order": 77157').waitFor();
    await panel.getByText("blue").waitFor();
    await panel.getByRole("radio", { name: "Hex" }).click();
    await panel.getByText(/^0000 {2}7b 22 6f/).waitFor();
    assert.deepEqual(await axe(page), []);
    await page.keyboard.press("Escape");
    await page.getByLabel("Filter").fill("PLAIN");
    await page.getByText(/1 found among 2/).waitFor();
    await page.waitForURL(/q=PLAIN/);
  });
  assert.equal(await bodies("looked"), '{"order":77157,"items":[]} plain');
  const got = await channel.get("looked");
  assert.equal(got.fields.redelivered, false);
  channel.ack(got);
});

test("an unacked message says who holds it, and closing that connection with a reason brings it back", async () => {
  await fill("stuck", ["job"]);
  const worker = await connect("stuck-worker");
  // The library takes 320 for an orderly end.
  const closed = new Promise((resolve) => worker.once("close", resolve));
  const own = await worker.createChannel();
  await own.consume("stuck", () => {});
  await on("/queues/%2F/stuck?standing=unacked", {}, async (page) => {
    await page.getByRole("table", { name: "Unacked messages" }).getByRole("row", { name: /stuck-worker/ }).click();
    const panel = page.getByRole("complementary", { name: "Message" });
    await panel.getByText("Held by").waitFor();
    await panel.getByRole("link", { name: "connection is closed" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText(/1 unacked message return/).waitFor();
    assert.deepEqual(await axe(page), []);
    await dialog.getByLabel("Reason").fill("maintenance at nine");
    await dialog.getByRole("button", { name: "Close the connection" }).click();
    await page.getByText(/gone since/).waitFor();
  });
  assert.match(String(await closed), /320.*maintenance at nine/i);
  const [back] = await peek("stuck");
  assert.deepEqual([back.body, back.redelivered], ["job", true]);
});

test("a message is published from its queue's page, by keyboard, with headers and properties", async () => {
  await fill("typed", []);
  await on("/queues/%2F/typed", {}, async (page) => {
    await page.getByText("No message is waiting").waitFor();
    await page.keyboard.press("n");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Body").fill('{"hello":"world"}');
    await dialog.getByLabel("Headers").fill("tries: 3\ntenant: blue");
    assert.deepEqual(await axe(page), []);
    await dialog.getByRole("button", { name: "Publish" }).click();
    await dialog.getByText("1 message published").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("row", { name: /hello/ }).waitFor();
  });
  const [m] = await peek("typed");
  assert.deepEqual([m.headers, m.properties.content_type], [{ tries: 3, tenant: "blue" }, "application/json"]);
});

test("messages move to another queue, and back within half a minute", async () => {
  await fill("source", ["1", "2", "3"]);
  await fill("target", ["x"]);
  await on("/queues/%2F/source", {}, async (page) => {
    await page.getByRole("button", { name: "Move", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("To queue").fill("target");
    await dialog.getByLabel("How many of the oldest").fill("2");
    await dialog.getByRole("button", { name: "Move 2 messages to target" }).click();
    await page.getByText("2 messages moved to target.").waitFor();
    assert.equal(await bodies("target"), "x 1 2");
    await page.getByRole("button", { name: /^Undo/ }).click();
    await waitUntil("they are back", async () => (await bodies("source")) === "3 1 2");
    assert.equal(await bodies("target"), "x");
  });
});

test("one message is sent to the back, one deleted, the oldest purged, and the queue deleted, each with its count", async () => {
  await fill("worked", ["1", "2", "3", "4", "5"]);
  await on("/queues/%2F/worked", {}, async (page) => {
    const act = async (row, item) => {
      await page.locator("tbody tr[tabindex]").nth(row).click();
      await page.getByRole("complementary", { name: "Message" }).getByRole("button", { name: "Actions" }).click();
      await page.getByRole("menuitem", { name: item }).click();
    };
    await act(0, "Requeue at the back");
    await waitUntil("it is last", async () => (await bodies("worked")) === "2 3 4 5 1");
    await waitUntil("the list shows it", async () => /^1\b.*\b2\b/s.test(await page.locator("tbody tr[tabindex]").first().innerText()));
    await act(0, "Delete…");
    await page.getByRole("dialog").getByRole("button", { name: "Delete 1 message" }).click();
    await waitUntil("one is gone", async () => (await bodies("worked")) === "3 4 5 1");
    await page.getByRole("button", { name: "Purge", exact: true }).click();
    await page.getByLabel("How many of the oldest").fill("2");
    await page.getByRole("button", { name: "Purge 2 messages" }).click();
    await waitUntil("two are gone", async () => (await bodies("worked")) === "5 1");
    await page.getByRole("button", { name: /More actions/ }).click();
    await page.getByRole("menuitem", { name: "Delete the queue…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("checkbox", { name: /no message is ready/ }).check();
    await dialog.getByRole("button", { name: "Delete the queue", exact: true }).click();
    await dialog.getByText(/not empty/).waitFor();
    await dialog.getByRole("checkbox", { name: /no message is ready/ }).uncheck();
    await dialog.getByRole("button", { name: "Delete the queue and 2 messages" }).click();
    await page.waitForURL(/\/queues($|\?)/);
  });
  await assert.rejects(reactor.api(path("worked")), /404/);
});

test("a dialog begins in its field, keeps the focus, does its work on Enter and gives the focus back", async () => {
  await fill("keys", ["a", "b", "c"]);
  await fill("keys.to", []);
  const opened = async (page, name) => {
    const button = page.getByRole("button", { name, exact: true });
    await button.focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.waitFor();
    return { button, dialog };
  };
  const gone = async (page, { button, dialog }) => {
    await dialog.waitFor({ state: "hidden" });
    assert.ok(await button.evaluate((node) => node === document.activeElement), "the focus is back");
  };
  await on("/queues/%2F/keys", {}, async (page) => {
    const publish = await opened(page, "Publish");
    await page.keyboard.type("d");
    for (let i = 0; i < 20; i += 1) {
      await page.keyboard.press("Tab");
      assert.ok(await page.evaluate(() => document.activeElement === document.body || document.activeElement.closest("dialog")));
    }
    await publish.dialog.getByLabel("Body").focus();
    await page.keyboard.press("Control+Enter");
    await publish.dialog.getByText("1 message published").waitFor();
    await page.keyboard.press("Escape");
    await gone(page, publish);
    const move = await opened(page, "Move");
    await page.keyboard.type("keys.to");
    await move.dialog.getByRole("button", { name: "Move 4 messages to keys.to" }).waitFor();
    await page.keyboard.press("Enter");
    await move.dialog.waitFor({ state: "hidden" });
    await waitUntil("they are moved", async () => (await bodies("keys.to")) === "a b c d");
  });
  await on("/queues/%2F/keys.to", {}, async (page) => {
    const purge = await opened(page, "Purge");
    await purge.dialog.getByLabel("How many of the oldest").fill("3");
    await purge.dialog.getByRole("button", { name: "Purge 3 messages" }).waitFor();
    await page.keyboard.press("Enter");
    await gone(page, purge);
    await waitUntil("the oldest are purged", async () => (await bodies("keys.to")) === "d");
  });
});

test("dead letters are counted by where they died and sent back there", async () => {
  await fill("origin", []);
  const death = { queue: "origin", exchange: "shop", "routing-keys": ["order.placed"], reason: "rejected", count: 1 };
  await fill("dead", ["first", "second"], { headers: { "x-death": [death] } });
  await on("/queues/%2F/dead", {}, async (page) => {
    await page.getByRole("button", { name: /More actions/ }).click();
    await page.getByRole("menuitem", { name: "Send dead letters back…" }).click();
    await page.getByRole("dialog").getByRole("row", { name: /origin rejected 2/ }).waitFor();
    assert.deepEqual(await axe(page), []);
    await page.getByRole("button", { name: "Send 2 messages back" }).click();
    await page.getByText("2 dead letters sent back to origin.").waitFor();
  });
  const back = await peek("origin");
  assert.deepEqual(
    back.map((m) => [m.body, m.exchange, m.routing_key]),
    [
      ["first", "shop", "order.placed"],
      ["second", "shop", "order.placed"],
    ],
  );
});

test("an exchange says where a message would go before it is sent, and the URL holds what was asked", async () => {
  await on("/queues/-/exchanges/%2F/shop", {}, async (page) => {
    await page.getByLabel("Routing key").fill("order.cancelled");
    await page.getByText(/Would reach 1 queue: mailer\.event/).waitFor();
    await page.waitForURL(/key=order\.cancelled/);
    await page.getByLabel("Routing key").fill("nobody");
    await page.getByText(/No queue would take it/).waitFor();
  });
  assert.equal((await reactor.api(path("mailer.event"))).ready, 0);
});

test("a message is followed from its publish to its ack, found by its id", async () => {
  await reactor.api("journeys");
  await channel.assertQueue("followed");
  await channel.bindQueue("followed", "shop", "followed.#");
  const worker = await connect("followed-worker");
  const own = await worker.createChannel();
  await own.consume("followed", (message) => own.ack(message));
  channel.publish("shop", "followed.one", Buffer.from('{"n":1}'), { messageId: "m-0815", contentType: "application/json" });
  await channel.waitForConfirms();
  await on("/queues?tab=messages", {}, async (page) => {
    await page.getByLabel("Filter").fill("m-0815");
    await page.getByRole("row", { name: /followed\.one.*acked/ }).click();
    await page.waitForURL(/message=\d+/);
    const panel = page.getByRole("complementary", { name: "Message" });
    for (const step of [/Published by guest/, /Routed by/, /Queued in/, /Delivered from/, /Acked in/])
      await panel.getByText(step).waitFor();
    assert.deepEqual(await axe(page), []);
    await picture(page, "broker-followed");
  });
  await worker.close();
});

test("a policy, a user with a permission and a space are made and deleted in their dialogs", async () => {
  await on("/queues?tab=policies", {}, async (page) => {
    await page.getByRole("button", { name: "New policy" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("orders-limit");
    await dialog.getByLabel("Pattern").fill("^worker\\.");
    await dialog.getByLabel("Sets").fill("max-length: 10000");
    assert.deepEqual(await axe(page), []);
    await dialog.getByRole("button", { name: "Make orders-limit" }).click();
    await page.getByRole("row", { name: /orders-limit.*max-length: 10000/ }).click();
    await page.getByRole("button", { name: "Delete this policy" }).click();
    await page.getByRole("button", { name: "Delete the policy" }).click();
    await page.getByText("No policies").waitFor();
  });
  await on("/access", {}, async (page) => {
    await page.getByRole("button", { name: "New user" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("ann");
    await dialog.getByLabel("Password").fill("secret-for-ann");
    assert.deepEqual(await axe(page), []);
    await dialog.getByRole("button", { name: "Make ann" }).click();
    await page.getByRole("row", { name: /ann.*no space/ }).waitFor();
    await page.goto(`${base}/access?tab=permissions`);
    await page.getByRole("button", { name: "New permission" }).click();
    await dialog.getByLabel("User").fill("ann");
    await dialog.getByLabel("Configure").fill("^ann\\.");
    await dialog.getByRole("button", { name: "Give the permission" }).click();
    await page.getByRole("row", { name: /ann/ }).waitFor();
    await page.goto(`${base}/access?tab=spaces`);
    await page.getByRole("button", { name: "New space" }).click();
    await dialog.getByLabel("Name").fill("blue");
    await dialog.getByRole("button", { name: "Make blue" }).click();
    await page.getByRole("row", { name: /^blue/ }).waitFor();
  });
  const users = await reactor.api("users");
  assert.deepEqual(users.find((u) => u.name === "ann")?.spaces, ["/"]);
});

test("limits of a user and a space, and a topic permission, are set and cleared in their dialogs", async () => {
  await reactor.api("users/bob", { method: "PUT", headers: { "content-type": "application/json" }, body: "{}" });
  await reactor.api("spaces/green", { method: "PUT" });
  await on("/access?open=bob", {}, async (page) => {
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("textbox", { name: "Connections" }).fill("many");
    await dialog.getByText("A whole number, or nothing for no limit.").waitFor();
    assert.equal(await dialog.getByRole("button", { name: "Save" }).isDisabled(), true);
    await dialog.getByRole("textbox", { name: "Connections" }).fill("3");
    await dialog.getByRole("textbox", { name: "Channels" }).fill("7");
    assert.deepEqual(await axe(page), []);
    await picture(page, "access-user-limits");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByRole("row", { name: /bob.*0 of 3.*7/ }).click();
    await dialog.getByRole("textbox", { name: "Connections" }).fill("");
    await dialog.getByRole("textbox", { name: "Channels" }).fill("");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByRole("row", { name: /bob.*no limit/ }).waitFor();

    await page.goto(`${base}/access?tab=spaces&open=green`);
    await dialog.getByRole("textbox", { name: "Queues" }).fill("5");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByRole("row", { name: /green.*0 of 5/ }).click();
    await dialog.getByRole("button", { name: "Delete this space" }).click();
    await dialog.getByRole("button", { name: "Delete the space and 0 messages" }).click();
    await page.getByRole("row", { name: /green/ }).waitFor({ state: "detached" });

    await page.goto(`${base}/access?tab=topics`);
    await page.getByRole("button", { name: "New topic permission" }).click();
    await dialog.getByLabel("User").fill("bob");
    await dialog.getByLabel("Write").fill("^orders\\.");
    assert.deepEqual(await axe(page), []);
    await picture(page, "access-topic");
    await dialog.getByRole("button", { name: "Hold it to these keys" }).click();
    await page.getByRole("row", { name: /bob.*amq\.topic.*\^orders.*everything/ }).click();
    await dialog.getByRole("button", { name: "Take this topic permission away" }).click();
    await dialog.getByRole("button", { name: "Take it away" }).click();
    await page.getByText("No topic permissions").waitFor();
  });
});

test("a list follows what is typed, and the click that leaves the filter is not lost", async () => {
  await fill("typed.one", []);
  await fill("typed.two", []);
  await on("/queues?q=typed.", {}, async (page) => {
    const row = (name) => page.getByRole("row", { name });
    await row(/typed\.one/).waitFor();
    await page.getByLabel("Filter").press("End");
    const pages = await page.evaluate(() => history.length);
    await page.getByLabel("Filter").pressSequentially("t", { delay: 20 });
    await row(/typed\.one/).waitFor({ state: "detached" });
    await page.waitForURL(/q=typed\.t/);
    assert.equal(await page.evaluate(() => history.length), pages, "typing fills no history");
    // A click right after the last letter, before it was applied.
    await page.getByLabel("Filter").pressSequentially("wo");
    await row(/typed\.two/).click();
    await page.getByRole("heading", { name: "typed.two" }).waitFor();
  });
});

test("a long name loses its middle: its end is seen, and its text stays whole", async () => {
  const name = "warehouse.reservations.europe.west-1.orders-of-the-night";
  await fill(name, ["a"]);
  await on("/queues?q=orders-of-the-night", { width: 390, height: 844 }, async (page) => {
    const cell = page.getByRole("row").nth(1).getByRole("cell").first();
    await cell.getByTitle(name).waitFor();
    await page.getByRole("cell", { name, exact: true }).waitFor();
    const copied = await cell.evaluate((node) => {
      getSelection().selectAllChildren(node);
      return getSelection().toString();
    });
    assert.equal(copied, name);
    const cuts = () =>
      cell.locator(".middle-cut").evaluate((node) => {
        const tail = document.createRange();
        tail.selectNode(node.lastElementChild.lastChild);
        const { left, right } = tail.getBoundingClientRect();
        const head = node.querySelector("i");
        return {
          cut: head.scrollWidth > head.clientWidth,
          gap: left - head.getBoundingClientRect().right,
          over: right - node.closest("td").getBoundingClientRect().right,
        };
      });
    const narrow = await cuts();
    assert.ok(narrow.cut && narrow.over <= 0 && Math.abs(narrow.gap) < 1, JSON.stringify(narrow));
    await page.setViewportSize({ width: 1800, height: 900 });
    await waitUntil("nothing is cut where there is room", async () => !(await cuts()).cut);
  });
});

test("permissions and topic permissions stand in the same columns", async () => {
  const one = { write: ".*", read: "^order" };
  await reactor.api("topic-permissions/%2F/guest?exchange=amq.topic", {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(one),
  });
  const heads = async (page, tab) => {
    await page.goto(`${base}/access?tab=${tab}`);
    await page.getByRole("row", { name: /guest/ }).waitFor();
    const lefts = await page
      .locator("th")
      .evaluateAll((nodes) => nodes.map((node) => [node.innerText, Math.round(node.getBoundingClientRect().left)]));
    return Object.fromEntries(lefts);
  };
  await on("/access", {}, async (page) => {
    const [all, topics] = [await heads(page, "permissions"), await heads(page, "topics")];
    for (const head of ["User", "Space", "Write", "Read"]) assert.equal(topics[head], all[head], head);
  });
});
