import { expect, test } from "vitest";
import { isChip, tokens, withoutToken, withTerm } from "./tokens";

test("free text, fields, comparisons and negation are told apart", () => {
  const t = tokens('timeout service:orders -logger:*.Health severity>=warn "did not answer" order.id:77');
  expect(t.map((x) => [x.field, x.op, x.value, x.negated])).toEqual([
    [null, null, "timeout", false],
    ["service", ":", "orders", false],
    ["logger", ":", "*.Health", true],
    ["severity", ">=", "warn", false],
    [null, null, "did not answer", false],
    ["order.id", ":", "77", false],
  ]);
});

test("quotes and expressions keep their spaces", () => {
  expect(tokens('body:"a b" /x y/ c').map((t) => t.text)).toEqual(['body:"a b"', "/x y/", "c"]);
  expect(tokens("path:/orders/1 x").map((t) => t.text)).toEqual(["path:/orders/1", "x"]);
});

test("tokens know where they stand", () => {
  const t = tokens("  a  service:b");
  expect(t.map((x) => [x.from, x.to])).toEqual([
    [2, 3],
    [5, 14],
  ]);
});

test("a field without a value is not a chip yet", () => {
  expect(tokens("service:").map(isChip)).toEqual([false]);
  expect(tokens("service:x").map(isChip)).toEqual([true]);
});

test("filtering to a value replaces the field's other value and its opposite", () => {
  expect(withTerm("a service:x", "service", "y")).toBe("a service:y");
  expect(withTerm("-service:x", "service", "y")).toBe("service:y");
  expect(withTerm("-service:x", "service", "y", true)).toBe("-service:x -service:y");
  expect(withTerm("", "order", "a b")).toBe('order:"a b"');
  expect(withTerm("service:y", "service", "y")).toBe("service:y");
});

test("removing one token leaves the others", () => expect(withoutToken("a b:c d", 1)).toBe("a d"));
