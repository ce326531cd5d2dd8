import { expect, test } from "vitest";
import type { Instrument, Series } from "../../api/types";
import { boardOf, linesOf, readBoard, unitOf, writeBoard } from "./board";

test("a board survives the URL, whatever its names hold", () => {
  const cards = [
    { name: "http.server.duration", service: "orders", group: "http.route" },
    { name: "queue,depth@50%~", service: undefined, group: undefined },
  ];
  expect(readBoard(writeBoard(cards))).toEqual(cards);
  expect(readBoard("")).toEqual([]);
});

test("without a choice the board shows the runtime and what services sent; an emptied board stays empty", () => {
  const instruments = ["x.y", "reactor.messages.published", "reactor.cpu"].map((name) => ({ name }) as Instrument);
  expect(boardOf(undefined, instruments).map((c) => c.name)).toEqual(["reactor.messages.published", "x.y"]);
  expect(boardOf("", instruments)).toEqual([]);
});

const series = (service: string, ...values: (number | null)[]): Series => ({
  name: "n",
  labels: {},
  service,
  values,
  min: values,
  max: values,
});

test("over eight series the small ones are one line, gaps stay gaps", () => {
  const lines = linesOf(Array.from({ length: 10 }, (_, i) => series(`s${i}`, i, null)));
  expect(lines.length).toBe(8);
  expect(lines[0]?.service).toBe("s9");
  expect(lines[7]).toEqual({ label: "3 others", service: "", values: [3, null] });
});

test("units decide how values are written", () => {
  expect(["ms", "By", "1", "{request}"].map(unitOf)).toEqual(["duration", "bytes", "share", "number"]);
});

test("of a histogram the quantiles are drawn, named by what tells them apart", () => {
  const p = (name: string, labels: Record<string, string>) => ({ ...series("reactor", 1), name, labels });
  const who = { service: "reactor", instance: "reactor" };
  expect(linesOf([p("d", who), p("d p50", who), p("d p95", who)]).map((l) => l.label)).toEqual(["p50", "p95"]);
  expect(linesOf([p("n", { route: "/a" }), p("n", { route: "/b" })]).map((l) => l.label)).toEqual(["/a", "/b"]);
});
