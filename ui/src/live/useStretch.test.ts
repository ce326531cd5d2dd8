import { expect, test } from "vitest";
import { windowFor } from "./useStretch";

test("the window stays while it shows what is on the screen", () => {
  expect(windowFor(0, 0, 40)).toBe(0);
  expect(windowFor(100, 160, 300)).toBe(100);
});
test("the window moves so that the screen is in its middle, and never before the first row", () => {
  expect(windowFor(0, 190, 230)).toBe(100);
  expect(windowFor(9000, 40, 80)).toBe(0);
  expect(windowFor(0, 5000, 5040)).toBe(4900);
});
