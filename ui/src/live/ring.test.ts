import { expect, test } from "vitest";
import { Ring } from "./ring";

const rows = (from: number, n: number) => Array.from({ length: n }, (_, i) => ({ seq: from + i }));
const seqs = (ring: Ring<{ seq: number }>, from: number, n: number) =>
  ring.window(from, n).map((e) => e.row?.seq ?? "gap");

test("a row keeps its position while others come and go", () => {
  const ring = new Ring<{ seq: number }>(100);
  ring.append(rows(0, 60));
  const before = ring.window(59, 1)[0];
  ring.append(rows(60, 60));
  expect(ring.window(59, 1)[0]).toEqual(before);
  expect(ring.length).toBeLessThanOrEqual(100);
  expect(ring.next).toBe(120);
});

test("eviction frees a tenth at a time and moves the first position", () => {
  const ring = new Ring<{ seq: number }>(100);
  ring.append(rows(0, 101));
  expect(ring.length).toBe(90);
  expect(ring.first).toBe(11);
  expect(seqs(ring, 0, 12)).toEqual([11]);
});

test("older rows take positions before the first", () => {
  const ring = new Ring<{ seq: number }>(100);
  ring.append(rows(10, 3));
  ring.prepend(rows(7, 3));
  expect(ring.first).toBe(-3);
  expect(seqs(ring, -3, 6)).toEqual([7, 8, 9, 10, 11, 12]);
});

test("gaps at the end join and keep exact counts", () => {
  const ring = new Ring<{ seq: number }>(100);
  ring.append(rows(0, 1));
  ring.appendGap({ skipped: 300, evicted: 0, restarted: false });
  ring.appendGap({ skipped: 40, evicted: 2, restarted: false });
  ring.append(rows(400, 1));
  expect(seqs(ring, 0, 9)).toEqual([0, "gap", 400]);
  expect(ring.window(1, 1)[0]?.gap).toEqual({ skipped: 340, evicted: 2, restarted: false });
});

test("with a key a row that comes again replaces the one that stands", () => {
  const ring = new Ring<{ id: string; n: number }>(10, (r) => r.id);
  expect(
    ring.append([
      { id: "a", n: 1 },
      { id: "b", n: 1 },
    ]),
  ).toBe(2);
  expect(
    ring.append([
      { id: "a", n: 2 },
      { id: "c", n: 1 },
    ]),
  ).toBe(1);
  expect(ring.window(0, 9).map((e) => `${e.row?.id}${e.row?.n}`)).toEqual(["a2", "b1", "c1"]);
});

test("a replaced row that was evicted comes back as new", () => {
  const ring = new Ring<{ id: number }>(10, (r) => r.id);
  ring.append(Array.from({ length: 11 }, (_, id) => ({ id })));
  expect(ring.append([{ id: 0 }])).toBe(1);
});
