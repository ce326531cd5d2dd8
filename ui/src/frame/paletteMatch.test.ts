import { expect, test } from "vitest";
import { type Candidate, find, isTraceId, modeOf } from "./paletteMatch";

const item = (text: string, also?: string): Candidate => ({
  id: text,
  group: "Go to",
  text,
  ...(also ? { also } : {}),
});
const texts = (items: Candidate[], text: string) => find(items, text, 9).map((m) => m.item.text);

test("prefixes choose commands, traces and paths", () => {
  expect(modeOf("> restart")).toEqual({ mode: "commands", text: "restart" });
  expect(modeOf("#4bf9")).toEqual({ mode: "trace", text: "4bf9" });
  expect(modeOf("/orders/1")).toEqual({ mode: "path", text: "/orders/1" });
  expect(modeOf(" wor ")).toEqual({ mode: "all", text: "wor" });
});

test("what begins with the text stands first, then what has a word that does", () => {
  const items = [item("network"), item("stock.worker"), item("worker.orders"), item("worker")];
  expect(texts(items, "worker")).toEqual(["worker", "worker.orders", "stock.worker"]);
});

test("every word must be found, in the text or beside it", () => {
  const items = [item("Restart worker-2", "instance"), item("Restart orders-1")];
  expect(texts(items, "restart worker")).toEqual(["Restart worker-2"]);
  expect(texts(items, "instance")).toEqual(["Restart worker-2"]);
  expect(texts(items, "zzz")).toEqual([]);
});

test("matches are marked where they stand", () =>
  expect(find([item("Restart worker")], "wor", 9)[0]?.marks).toEqual([[8, 11]]));

test("without a text everything stands in its order", () =>
  expect(texts([item("b"), item("a")], "")).toEqual(["b", "a"]));

test("a trace id is 32 hexadecimal digits", () => {
  expect(isTraceId("4bf92f3577b34da6a3ce929d0e0e4736")).toBe(true);
  expect(isTraceId("4bf92f3")).toBe(false);
});
