import { expect, test } from "vitest";
import { compare, holdOrder, nextSort, readColumns, readSort, writeColumns } from "./columns";

test("a head sorts numbers from the largest, text from the first, then the other way, then not", () => {
  expect(nextSort(null, "rate", true)).toBe("-rate");
  expect(nextSort(readSort("-rate"), "rate", true)).toBe("rate");
  expect(nextSort(readSort("rate"), "rate", true)).toBeUndefined();
  expect(nextSort(null, "name", false)).toBe("name");
  expect(nextSort(readSort("name"), "name", false)).toBe("-name");
  expect(nextSort(readSort("-rate"), "name", false)).toBe("name");
});

test("unknown values stand last in both directions", () => {
  const values = [3, null, 1, undefined, 2];
  expect([...values].sort((a, b) => compare(a, b, false)).slice(0, 3)).toEqual([1, 2, 3]);
  expect([...values].sort((a, b) => compare(a, b, true)).slice(0, 3)).toEqual([3, 2, 1]);
});

test("names with numbers sort as people count", () => {
  expect(["w-10", "w-2"].sort((a, b) => compare(a, b, false))).toEqual(["w-2", "w-10"]);
});

test("a held order leaves out what goes and appends what comes", () => {
  expect(holdOrder(["a", "c", "d", "b"], (x) => x, ["c", "x", "a"])).toEqual(["c", "a", "d", "b"]);
});

test("chosen columns are written to the URL and read back", () => {
  const text = "-cpu,+pid,state:194";
  expect(writeColumns(readColumns(text))).toBe(text);
  expect(writeColumns(readColumns(undefined))).toBeUndefined();
});
