import { expect, test } from "vitest";
import { brushed, lengthWords, parseLength, readRange, timeStep, timeTicks, writeLength, zoom } from "./range";

const NOW = 1_764_513_127_000_000;

test("without parameters the range is the last 15 minutes and live", () => {
  const range = readRange({}, NOW);
  expect(range.span).toEqual({ from_us: NOW - 900e6, to_us: NOW, live: true });
  expect(range.brush).toBeNull();
});

test("lengths are written as people say them and read back", () => {
  for (const s of [30, 90, 300, 3600, 21_600, 86_400]) expect(parseLength(writeLength(s))).toBe(s);
  expect(writeLength(900)).toBeUndefined();
  expect(writeLength(3600)).toBe("1h");
  expect(parseLength("nonsense")).toBe(900);
  expect(parseLength("1s")).toBe(30);
  expect(lengthWords(900)).toBe("15 min");
  expect(lengthWords(754)).toBe("12 min 34 s");
});

test("a brush becomes the range of every view", () => {
  const range = readRange({ from: NOW / 1000 - 480_000, to: NOW / 1000 - 60_000 }, NOW);
  expect(range.span).toEqual({ from_us: NOW - 480e6, to_us: NOW - 60e6, live: false });
  expect(range.window.live).toBe(true);
});

test("a brush dragged to the live end reaches to now and stays live", () => {
  const range = readRange({}, NOW);
  const search = brushed(range, NOW - 2e6, NOW - 487e6);
  expect(search).toEqual({ from: Math.round((NOW - 487e6) / 1000), to: undefined });
  expect(readRange(search, NOW + 60e6).span.live).toBe(true);
});

test("a brush is clipped to the window", () => {
  const search = brushed(readRange({}, NOW), NOW - 5000e6, NOW - 100e6);
  expect(search.from).toBe((NOW - 900e6) / 1000);
});

test("zooming in at the live end stays live, in the middle it fixes the window there", () => {
  const range = readRange({}, NOW);
  expect(zoom(range, NOW, 0.5, NOW)).toMatchObject({ last: "450s", end: undefined });
  const middle = zoom(range, NOW - 450e6, 0.5, NOW);
  expect(middle.end).toBeDefined();
  const zoomed = readRange(middle, NOW);
  const k = (NOW - 450e6 - zoomed.window.from_us) / (zoomed.window.to_us - zoomed.window.from_us);
  expect(k).toBeCloseTo(0.5, 2);
});

test("zooming out never shows the future", () => {
  const range = readRange({ last: "5m", end: NOW / 1000 - 600_000 }, NOW);
  const out = readRange(zoom(range, NOW - 700e6, 8, NOW), NOW);
  expect(out.window.to_us).toBeLessThanOrEqual(NOW);
});

test("axis labels are round times inside the span", () => {
  expect(timeStep(900, 8)).toBe(120);
  const { at, step } = timeTicks({ from_us: NOW - 900e6, to_us: NOW }, 8);
  expect(step).toBe(120);
  for (const t of at) {
    expect((t / 1e6) % 120).toBe(0);
    expect(t).toBeGreaterThanOrEqual(NOW - 900e6);
    expect(t).toBeLessThan(NOW);
  }
});
