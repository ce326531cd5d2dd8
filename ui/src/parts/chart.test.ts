import { expect, test } from "vitest";
import { peakOf, runs } from "./chart";

test("stacked bars count by their sum, lines by their extremes", () => {
  const stack = [
    { name: "error", values: [1, 2], ink: "", bars: true },
    { name: "warn", values: [3, null], ink: "", bars: true, stacked: true },
    { name: "rest", values: [1, 5], ink: "", bars: true, stacked: true },
  ];
  expect(peakOf(stack)).toBe(7);
  expect(peakOf([{ name: "p95", values: [1, 2], max: [9, 2], ink: "" }])).toBe(9);
  expect(peakOf([])).toBe(0);
});

test("a line breaks where nothing is known", () => {
  expect(runs([1, 2, null, 3, null])).toEqual([
    [0, 2],
    [3, 4],
  ]);
});
