import { expect, test } from "vitest";
import { fieldWords, oneLine } from "./rows";

test("a message of many lines is told by its first", () => {
  expect(oneLine("boom\n  at x")).toBe("boom ⏎");
  expect(oneLine("fine")).toBe("fine");
});

test("fields stand as key and value, whatever their type", () => {
  expect(fieldWords({ "order.id": "77", items: 2, ok: true, tags: ["a"] })).toBe(
    'order.id=77 items=2 ok=true tags=["a"]',
  );
  expect(fieldWords({})).toBe("");
  expect(fieldWords({ "log.iostream": "stdout", a: 1 })).toBe("a=1");
});
