import { expect, test } from "vitest";
import type { PeekedMessage, Queue } from "../../api/types";
import { bodyText, features, fullIn, limitOf, messageMatches, senderOf, traceOf } from "./queue";

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
  expect(bodyText(message({ body: '{"a":1}' }))).toEqual({ text: '{\n  "a": 1\n}', kind: "json" });
  expect(bodyText(message({ body: '{"a":1' })).kind).toBe("text");
  expect(bodyText(message({ body: "42" })).kind).toBe("text");
  const bytes = bodyText(message({ body: btoa("AB\x00"), encoding: "base64" }));
  expect(bytes.text).toMatch(/^0000 {2}41 42 00 +AB·$/);
});

test("messages are found by key, header and body", () => {
  const m = message({ body: '{"order":77155}', headers: { tenant: "acme" } });
  expect(messageMatches(m, "77155")).toBe(true);
  expect(messageMatches(m, "ACME")).toBe(true);
  expect(messageMatches(m, "other")).toBe(false);
});
