import { expect, test } from "vitest";
import type { FollowedMessage, JourneyStep } from "../../api/types";
import { endOf } from "./journey";

const message = (open: number, ...steps: (string | Partial<JourneyStep>)[]): FollowedMessage =>
  ({ open, steps: steps.map((s) => (typeof s === "string" ? { what: s } : s)) }) as FollowedMessage;

test("an open message is where its last copy is", () => {
  expect(endOf(message(1, "published", "routed", "queued")).words).toBe("waiting");
  expect(endOf(message(1, "published", "queued", "delivered")).words).toBe("being worked on");
  expect(endOf(message(1, "queued", "delivered", "requeued")).words).toBe("waiting");
});
test("a finished message says how it ended, the worst of its copies first", () => {
  expect(endOf(message(0, "queued", "delivered", "acked"))).toEqual({ words: "acked", tone: "quiet" });
  expect(endOf(message(0, "delivered", "acked", "expired", "dead-lettered")).words).toBe("dead-lettered");
  expect(endOf(message(0, "published", "unroutable"))).toEqual({ words: "no queue", tone: "err" });
  expect(endOf(message(0, "queued", { what: "delivered", no_ack: true })).words).toBe("delivered");
});
