import { expect, test } from "vitest";
import { type Leaving, leave } from "./leaving";

const things = (...names: string[]) => new Map(names.map((name) => [name, name.toUpperCase()]));
const none: Leaving<string> = new Map();

test("what left is kept as it last was, for a moment or until it is back", () => {
  const left = leave(things("a", "b"), things("a"), none, 1_000);
  expect(left).toEqual(new Map([["b", { thing: "B", since_ms: 1_000 }]]));
  expect([...leave(things("a"), things(), left, 1_300).keys()]).toEqual(["b", "a"]);
  expect([...leave(things("a"), things("a", "b"), left, 1_300).keys()]).toEqual([]);
  expect([...leave(things("a"), things("a"), left, 2_000).keys()]).toEqual([]);
});

test("nothing new is made while nothing leaves", () => {
  expect(leave(things("a"), things("a", "b"), none, 0)).toBe(none);
});
