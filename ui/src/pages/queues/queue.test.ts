import { expect, test } from "vitest";
import type { PeekedMessage, Queue } from "../../api/types";
import {
  argumentWords,
  bodyAs,
  bodyViews,
  deathOf,
  durabilityWords,
  features,
  fullIn,
  limitOf,
  senderOf,
  traceOf,
} from "./queue";

const queue = (more: Partial<Queue>): Queue =>
  ({
    durable: true,
    exclusive: false,
    auto_delete: false,
    arguments: {},
    not_on_disk: true,
    ready: 0,
    in_rate: 0,
    out_rate: 0,
    tone: "normal",
    ...more,
  }) as Queue;
const message = (more: Partial<PeekedMessage>): PeekedMessage =>
  ({
    routing_key: "order.placed",
    exchange: "reactor.event",
    body: "",
    encoding: "utf8",
    properties: {},
    headers: {},
    ...more,
  }) as PeekedMessage;

test("time until full only for a limited queue that grows", () => {
  const limited = { arguments: { "x-max-length": 10_000 }, ready: 1000 };
  expect(fullIn(queue({ ...limited, in_rate: 41, out_rate: 36.5 }))).toBeCloseTo(2000);
  expect(fullIn(queue({ ...limited, in_rate: 36, out_rate: 36 }))).toBeNull();
  expect(fullIn(queue({ ready: 5, in_rate: 9 }))).toBeNull();
  expect(limitOf(queue({ arguments: { "x-max-length": "10" } }))).toBeNull();
});

test("a durable queue that is in memory says so", () => {
  expect(features(queue({})).map((f) => f.text)).toEqual(["classic", "durable", "not on disk"]);
  expect(features(queue({ durable: false, not_on_disk: false })).map((f) => f.text)).toEqual(["classic"]);
  expect(
    features(queue({ arguments: { "x-max-length": 10_000, "x-overflow": "reject-publish" } })).map((f) => f.text),
  ).toContain("limit 10,000, reject");
});

test("the trace comes from traceparent, the sender from what the message says", () => {
  expect(
    traceOf(message({ headers: { traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" } })),
  ).toBe("4bf92f3577b34da6a3ce929d0e0e4736");
  expect(traceOf(message({ headers: { traceparent: "nonsense" } }))).toBeNull();
  expect(senderOf(message({ properties: { app_id: "orders" } }))).toBe("orders");
});

test("JSON is set out, text stays, bytes become hex", () => {
  const json = message({ body: '{"a":1}' });
  expect([bodyViews(json), bodyAs(json, "json")]).toEqual([["json", "text", "hex"], '{\n  "a": 1\n}']);
  expect(bodyAs(json, "hex")).toMatch(/^0000 {2}7b 22 61 22 3a 31 7d +\{"a":1\}$/);
  expect(bodyViews(message({ body: '{"a":1' }))).toEqual(["text", "hex"]);
  expect(bodyViews(message({ body: "42" }))).toEqual(["text", "hex"]);
  const bytes = message({ body: btoa("AB\x00"), encoding: "base64" });
  expect([bodyViews(bytes), bodyAs(bytes, "hex")]).toEqual([["hex"], expect.stringMatching(/^0000 {2}41 42 00 +AB·$/)]);
});

test("a dead letter says where it died last, other than here", () => {
  const death = { queue: "orders", exchange: "shop", "routing-keys": ["placed"], reason: "rejected", count: 3 };
  const deaths = [{ ...death, queue: "here" }, death];
  expect(deathOf(message({ headers: { "x-death": deaths } }), "here")).toEqual({
    queue: "orders",
    exchange: "shop",
    key: "placed",
    reason: "rejected",
    count: 3,
  });
  expect(deathOf(message({ headers: { "x-death": "nonsense" } }), "here")).toBeNull();
  expect(deathOf(message({}), "here")).toBeNull();
});

test("arguments and durability are said in words", () => {
  const limited = queue({ arguments: { "x-max-length": 10, "x-overflow": "reject-publish" } });
  expect(argumentWords("x-max-length", 10, limited)).toBe("what is published is refused with a nack");
  expect(argumentWords("x-message-ttl", 1500, limited)).toBe("messages expire after 1.5 s here");
  expect(argumentWords("team", "sales", limited)).toBeNull();
  expect(durabilityWords(queue({}))).toContain("not on disk");
  expect(durabilityWords(queue({ durable: false }))).toContain("Transient");
});
