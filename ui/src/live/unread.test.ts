import { expect, test } from "vitest";
import { unreadErrors } from "./unread";

test("what was seen is not unread, until the process is another one", () => {
  expect(unreadErrors({ started_us: 7, seen: 30 }, 7, 38)).toBe(8);
  expect(unreadErrors({ started_us: 7, seen: 30 }, 8, 38)).toBe(38);
  expect(unreadErrors({ started_us: 7, seen: 30 }, 7, undefined)).toBe(0);
  expect(unreadErrors({ started_us: 7, seen: 30 }, 7, 12)).toBe(0);
});
