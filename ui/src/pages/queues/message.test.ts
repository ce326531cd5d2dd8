import { expect, test } from "vitest";
import { NO_PROPERTIES, readCount, readHeaders, readProperties, typeOf } from "./message";

test("headers are read line by line, JSON where it is JSON", () => {
  const { headers, wrong } = readHeaders('tenant: blue\ntries: 3\n\nnested: {"a":[1]}\nurl: http://x:1/');
  expect(wrong).toBeNull();
  expect(headers).toEqual({ tenant: "blue", tries: 3, nested: { a: [1] }, url: "http://x:1/" });
});
test("a line without a colon is pointed at", () => {
  expect(readHeaders("a: 1\nnothing").wrong).toBe("Line 2 is not written as name: value");
  expect(readHeaders(": 1").wrong).toBe("Line 1 is not written as name: value");
});
test("only given properties are sent, and numbers are checked", () => {
  expect(readProperties(NO_PROPERTIES).properties).toEqual({ delivery_mode: 2 });
  const given = readProperties({
    ...NO_PROPERTIES,
    expiration: "1s",
    priority: "300",
    type: "order",
    persistent: false,
  });
  expect(given.properties).toEqual({ delivery_mode: 1, type: "order" });
  expect(given.wrong).toEqual({ expiration: "Whole milliseconds", priority: "0 to 255" });
});
test("counts may be written with separators", () => {
  expect([readCount("1,248"), readCount("0"), readCount("x"), readCount("")]).toEqual([1248, null, null, null]);
});
test("a body that is JSON is declared as such", () => {
  expect([typeOf('{"a":1}'), typeOf("{a}"), typeOf("12")]).toEqual(["application/json", "", ""]);
});
