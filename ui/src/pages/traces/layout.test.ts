import { expect, test } from "vitest";
import type { LogRow, SpanRow, Trace } from "../../api/types";
import { buildTree, criticalPath, foldOf, isInternal, linesOf, roundStep, Scale, selfTime, titleOf } from "./layout";

const span = (
  id: string,
  parent: string | null,
  start: number,
  duration: number,
  more: Partial<SpanRow> = {},
): SpanRow => ({
  span_id: id,
  parent,
  inferred: false,
  name: id,
  kind: "internal",
  start_ns: start,
  duration_ns: duration,
  service: "a",
  instance: "",
  own: false,
  wait: false,
  open: false,
  status: "unset",
  status_text: "",
  attributes: {},
  events: [],
  links: [],
  ...more,
});
const trace = (spans: SpanRow[], logs: Partial<LogRow>[] = []): Trace => ({
  trace_id: "t",
  started_us: 1000,
  answered_ns: null,
  finished_ns: Math.max(...spans.map((s) => s.start_ns + s.duration_ns)),
  spans,
  logs: logs as LogRow[],
  verdict: null,
  missing_parents: [],
});
const all = { folded: new Set<string>(), logs: true, plain: false };
const names = (spans: SpanRow[], options = all, logs: Partial<LogRow>[] = []) =>
  linesOf(buildTree(trace(spans, logs)), options).map((line) =>
    line.kind === "span"
      ? `${" ".repeat(line.node.depth)}${line.node.span.span_id}`
      : line.kind === "log"
        ? `${" ".repeat(line.depth)}log`
        : `missing ${line.id}`,
  );

test("rows read as a tree by time, log rows at theirs", () => {
  const spans = [
    span("root", null, 0, 100),
    span("b", "root", 50, 10),
    span("a", "root", 10, 10),
    span("a1", "a", 11, 2),
  ];
  expect(names(spans, all, [{ at_us: 1000.03, span_id: "root" }])).toEqual(["root", " a", "  a1", " log", " b"]);
});

test("a parent that never came is said, and cycles do not hide spans", () => {
  expect(names([span("x", "gone", 0, 1)])).toEqual(["missing gone", "x"]);
  expect(names([span("p", "q", 0, 1), span("q", "p", 0, 1)]).filter((n) => !n.startsWith("missing")).length).toBe(2);
  expect(names([span("self", "self", 0, 1)])).toContain("self");
});

test("a folded span hides what is below; without reactor's own spans children move up", () => {
  const spans = [span("root", null, 0, 9), span("own", "root", 1, 5, { own: true }), span("kid", "own", 2, 3)];
  expect(names(spans, { ...all, folded: new Set(["own"]) })).toEqual(["root", " own"]);
  expect(names(spans, { ...all, plain: true })).toEqual(["root", " kid"]);
});

test("twenty thousand spans one below the other are laid out", () => {
  const spans = Array.from({ length: 20_000 }, (_, i) => span(`s${i}`, i === 0 ? null : `s${i - 1}`, i, 20_000 - i));
  expect(linesOf(buildTree(trace(spans)), all).length).toBe(20_000);
});

test("what reactor saw of a service's own work is the service's", () => {
  expect(isInternal(span("a", null, 0, 1, { own: true, kind: "consumer" }))).toBe(false);
  expect(isInternal(span("a", null, 0, 1, { own: true, kind: "producer" }))).toBe(true);
  expect(isInternal(span("a", null, 0, 1, { own: true, kind: "consumer", wait: true }))).toBe(true);
  expect(isInternal(span("a", null, 0, 1, { kind: "client" }))).toBe(false);
});

test("the critical path goes through the step that ended last, over asynchronous ends too", () => {
  const spans = [
    span("root", null, 0, 10),
    span("fast", "root", 1, 2),
    span("slow", "root", 4, 5),
    span("late", "root", 9, 31),
  ];
  const path = criticalPath(buildTree(trace(spans)));
  expect(path.get("late")).toEqual([[9, 40]]);
  expect(path.get("slow")).toEqual([[4, 9]]);
  expect(path.get("fast")).toEqual([[1, 3]]);
  expect(path.get("root")).toEqual([[0, 10]]);
  expect(
    criticalPath(buildTree(trace([span("r", null, 0, 9), span("a", "r", 1, 7), span("b", "r", 2, 3)]))).has("b"),
  ).toBe(false);
});

test("a lone wait over 60 % may be folded, less or accompanied not", () => {
  const spans = [span("r", null, 0, 10), span("w", "r", 10, 80, { wait: true }), span("x", "w", 90, 10)];
  expect(foldOf(spans, 100)).toEqual({ from: 10, to: 90 });
  expect(foldOf([...spans, span("busy", "r", 40, 30)], 100)).toBeNull();
  expect(foldOf([span("r", null, 0, 100), span("w", "r", 10, 80, { wait: true })], 100)).toBeNull();
});

test("the scale places times around a fold and back", () => {
  const scale = new Scale(100, { from: 10, to: 90 });
  expect(scale.x(10)).toBeCloseTo(0.45);
  expect(scale.x(90)).toBeCloseTo(0.55);
  for (const t of [0, 5, 10, 50, 90, 99]) expect(scale.at(scale.x(t))).toBeCloseTo(t);
  const zoomed = scale.zoom(0.2, 0.5);
  expect(zoomed.at(0.2)).toBeCloseTo(scale.at(0.2));
  expect(scale.zoom(0.5, 4).to).toBe(1);
});

test("ticks are round and keep their distance", () => {
  expect(new Scale(187e6, null).ticks(0.2)).toEqual([0, 50e6, 100e6, 150e6]);
  expect(roundStep(31)).toBe(50);
});

test("self time leaves out children, counted once where they overlap", () => {
  const [root] = buildTree(trace([span("r", null, 0, 100), span("a", "r", 10, 30), span("b", "r", 20, 40)]));
  expect(selfTime(root as NonNullable<typeof root>)).toBe(50);
});

test("a request is called by its path, anything else by its name", () => {
  const attributes = { "http.request.method": "GET", "url.path": "/orders/42" };
  const named = (kind: SpanRow["kind"], has: Record<string, unknown>) =>
    titleOf({ kind, name: "GET /orders", attributes: has });
  expect(named("server", attributes)).toBe("GET /orders/42");
  expect(named("client", attributes)).toBe("GET /orders");
  expect(named("server", {})).toBe("GET /orders");
});
