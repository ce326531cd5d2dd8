import { expect, test } from "vitest";
import { type Draft, filterOf, settle, settled, typed, unchipped, withoutChip } from "./draft";

const shown = ({ chips, text }: Draft) => [chips.map((c) => c.text), text];
const type = (draft: Draft, text: string, plain = false): Draft =>
  [...text].reduce((d, c) => typed(d, d.text + c, plain), draft);
const EMPTY = settled("", false);

test("what is typed filters before it is settled", () => {
  const draft = type(EMPTY, "status:500");
  expect(shown(draft)).toEqual([[], "status:500"]);
  expect(filterOf(draft, false)).toBe("status:500");
  expect(filterOf(type(EMPTY, "timeout status:"), false)).toBe("timeout");
});

test("a space after a condition makes it a chip, one in free text does not", () => {
  expect(shown(type(EMPTY, "service:orders slow query"))).toEqual([["service:orders"], "slow query"]);
  expect(shown(type(EMPTY, "did not "))).toEqual([[], "did not "]);
  expect(shown(settle(type(EMPTY, "slow status:500"), false))).toEqual([["status:500"], "slow"]);
});

test("a plain filter is text whatever it looks like", () => {
  const draft = type(settled("", true), "a:b c ", true);
  expect(shown(draft)).toEqual([[], "a:b c "]);
  expect(filterOf(draft, true)).toBe("a:b c");
});

test("chips go one by one, and the last one can be written on", () => {
  const draft = settled("service:a slow status:500", false);
  expect(shown(withoutChip(draft, 0))).toEqual([["status:500"], "slow"]);
  expect(shown(unchipped(draft))).toEqual([["service:a"], "status:500 slow"]);
});
