import { expect, test } from "vitest";
import { queueAt } from "./queueAt";

const shown = (line: string, queue: string) => {
  const at = queueAt(line, queue);
  return at === null ? null : [line.slice(0, at), line.slice(at + queue.length)];
};

test("a line's queue is found by what the happening says, whatever its name is", () => {
  expect(shown("queue jobs of the night created by guest", "jobs of the night")).toEqual([
    "queue ",
    " created by guest",
  ]);
  expect(shown("queue queue created by queue", "queue")).toEqual(["queue ", " created by queue"]);
  expect(shown("binding audit > audit with # created by guest", "audit")).toEqual([
    "binding audit > ",
    " with # created by guest",
  ]);
  expect(shown("orders is full", "orders")).toEqual(["", " is full"]);
  expect(shown("something else", "orders")).toBeNull();
});
