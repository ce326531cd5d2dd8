import { expect, test } from "vitest";
import type { State } from "../api/types";
import { Announcements } from "./announce";

const services = (...list: [string, State][]) => list.map(([name, state]) => ({ name, state }));

test("what was there at first is not announced, changes of state are", () => {
  const a = new Announcements();
  expect(a.next(services(["worker", "ready"]), 0)).toBeNull();
  expect(a.next(services(["worker", "ready"]), 1000)).toBeNull();
  expect(a.next(services(["worker", "failing"]), 2000)).toBe("worker is failing");
});

test("at most one message in five seconds, joined and with the newest word", () => {
  const a = new Announcements();
  a.next(services(["worker", "ready"], ["orders", "ready"]), 0);
  expect(a.next(services(["worker", "failing"], ["orders", "ready"]), 1000)).toBe("worker is failing");
  expect(a.next(services(["worker", "starting"], ["orders", "ready"]), 2000)).toBeNull();
  expect(a.next(services(["worker", "ready"], ["orders", "degraded"]), 3000)).toBeNull();
  expect(a.next(services(["worker", "ready"], ["orders", "degraded"]), 6001)).toBe(
    "worker is ready, orders is degraded",
  );
});

test("services that come and go are named", () => {
  const a = new Announcements();
  a.next(services(["worker", "ready"]), 0);
  expect(a.next(services(["mailer", "ready"]), 10_000)).toBe("mailer attached, worker is gone");
});
