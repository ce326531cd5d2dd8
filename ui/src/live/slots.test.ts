import { expect, test } from "vitest";
import { slotsAfter } from "./slots";

test("a service that left keeps its colour, and of a great many only the last do", () => {
  let known: ReadonlyMap<string, number> = new Map();
  const look = (...names: string[]) => {
    known = slotsAfter(
      known,
      names.map((name, i) => ({ name, slot: i + 2 })),
      2,
    );
    return [...known.keys()].sort().join(" ");
  };
  expect(look("a")).toBe("a");
  expect(look("b")).toBe("a b");
  expect(known.get("a")).toBe(2);
  expect(look("c")).toBe("a b c");
  expect(look("d")).toBe("b c d");
  const before = known;
  look("d");
  expect(known).toBe(before);
});
