import { expect, test } from "vitest";
import { peerOf } from "./connection";

test("a connection without a name of its own is told by its peer", () => {
  expect(peerOf("127.0.0.1:49152 -> 127.0.0.1:5672")).toBe("127.0.0.1:49152");
  expect(peerOf("[2001:db8::1]:49152 -> [::1]:5672")).toBe("[2001:db8::1]:49152");
  expect(peerOf("orders -> billing")).toBe("orders -> billing");
  expect(peerOf("warehouse-7")).toBe("warehouse-7");
});
