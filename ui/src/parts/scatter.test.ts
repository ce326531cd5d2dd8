import { expect, test } from "vitest";
import { decades } from "./scatter";

const of = (...ns: number[]) => decades(ns.map((duration_ns) => ({ duration_ns })));

test("the axis has whole decades around the durations, two at least", () => {
  expect(of(2e6, 4e6)).toEqual({ low: 6, high: 8 });
  expect(of(5e3, 32e9)).toEqual({ low: 3, high: 11 });
});

test("without points the axis stands at 1 ms to 1 s, and what takes no time stands at 1 µs", () => {
  expect(of()).toEqual({ low: 6, high: 9 });
  expect(of(0, 40)).toEqual({ low: 3, high: 5 });
});
