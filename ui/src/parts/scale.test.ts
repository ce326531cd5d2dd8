import { expect, test } from "vitest";
import { niceMax } from "./scale";

test("maxima are round and never below the value", () => {
  for (const v of [0.0021, 0.31, 1, 7.2, 412, 1086, 1248, 184e6, 9_999_999]) {
    const max = niceMax(v);
    expect(max).toBeGreaterThanOrEqual(v);
    expect(max / v).toBeLessThan(1.7);
  }
  expect(niceMax(412)).toBe(500);
  expect(niceMax(1086)).toBe(1200);
  expect(niceMax(0.31)).toBe(0.4);
});

test("without values the axis still stands", () => {
  expect(niceMax(0)).toBe(1);
  expect(niceMax(Number.NaN)).toBe(1);
  expect(niceMax(0, { whole: true })).toBe(2);
});

test("counts get whole halves, bytes round binary units", () => {
  expect(niceMax(1, { whole: true })).toBe(2);
  expect(niceMax(3, { whole: true })).toBe(4);
  expect(niceMax(300 * 1024, { base1024: true })).toBe(300 * 1024);
});
