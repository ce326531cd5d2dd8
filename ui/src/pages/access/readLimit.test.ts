import { expect, test } from "vitest";
import { readLimit } from "./readLimit";

test("a limit is a whole number, nothing is no limit", () => {
  expect(["", " 12 ", "0", "-1", "1.5", "many", "9".repeat(20)].map(readLimit)).toEqual([
    null,
    12,
    0,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});
