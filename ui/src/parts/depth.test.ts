import { expect, test } from "vitest";
import { channelFill, channelTone } from "./depth";

test("one message lights one rod, a full queue all of them, almost full one less", () => {
  expect(channelFill(0, 10_000, 24)).toBe(0);
  expect(channelFill(1, 10_000, 24)).toBe(1);
  expect(channelFill(9_999, 10_000, 24)).toBe(23);
  expect(channelFill(10_000, 10_000, 24)).toBe(24);
});

test("the scale is logarithmic", () => {
  expect(channelFill(100, 10_000, 24)).toBe(12);
  expect(channelFill(1248, 10_000, 24)).toBe(19);
});

test("a queue without a limit has an open end", () => {
  expect(channelFill(1_000_000, null, 24)).toBe(24);
  expect(channelFill(100, null, 24)).toBe(10);
});

test("a full channel is red whatever the tone", () => {
  expect(channelTone(10, 10, "normal")).toBe("var(--err-fill)");
  expect(channelTone(5, 10, "warn")).toBe("var(--warn-fill)");
  expect(channelTone(5, 10, "normal")).toBe("var(--chart-2)");
});
