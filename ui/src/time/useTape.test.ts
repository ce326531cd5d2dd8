import { expect, test } from "vitest";
import { tapeOf } from "./useTape";

const frame = { from_us: 5e6, bucket_us: 5e6, markers: [], gaps: [] };

test("live buckets stand in order whatever order they came in", () => {
  const tape = tapeOf(
    new Map<string, unknown>([
      ["10000000", [3, 1]],
      ["frame", frame],
      ["5000000", [2, 0]],
    ]),
  );
  expect(tape).toEqual({ ...frame, requests: [2, 3], failed: [0, 1] });
});

test("a bucket that never came is unknown, not zero", () => {
  const tape = tapeOf(
    new Map<string, unknown>([
      ["frame", frame],
      ["5000000", [2, 0]],
      ["15000000", [4, 0]],
    ]),
  );
  expect(tape?.requests).toEqual([2, null, 4]);
});

test("without a frame there is no tape yet", () => expect(tapeOf(new Map())).toBeNull());
