import { describe, expect, test } from "vitest";
import * as f from "./format";

const MS = 1e6;
const S = 1e9;

describe("counts", () => {
  test("tables show every digit with separators to 9,999,999", () => {
    expect(f.count(0)).toBe("0");
    expect(f.count(1248)).toBe("1,248");
    expect(f.count(9_999_999)).toBe("9,999,999");
    expect(f.count(10_000_000)).toBe("10.0 M");
  });
  test("heads and ledgers use three significant digits with k, M, G", () => {
    expect(f.countShort(1204)).toBe("1,204");
    expect(f.countShort(96_240)).toBe("96.2 k");
    expect(f.countShort(371_300)).toBe("371 k");
    expect(f.countShort(36_100_000)).toBe("36.1 M");
    expect(f.countShort(1_310_000)).toBe("1.31 M");
    expect(f.countShort(2_000_000_000)).toBe("2.00 G");
    expect(f.countShort(999_999)).toBe("1.00 M");
  });
});

describe("rates", () => {
  test("from 100 whole, from 10 one decimal in detail and whole in tables, below 10 one decimal", () => {
    expect(f.rate(412.4)).toBe("412 /s");
    expect(f.rate(41.27)).toBe("41.3 /s");
    expect(f.rateCell(41.27)).toBe("41");
    expect(f.rate(4.52)).toBe("4.5 /s");
    expect(f.rateCell(4.52)).toBe("4.5");
    expect(f.rate(99.97)).toBe("100 /s");
    expect(f.rateCell(9.97)).toBe("10");
    expect(f.rate(12_480)).toBe("12,480 /s");
  });
  test("the unit is glued on the map", () => {
    expect(f.rateGlued(398)).toBe("398/s");
    expect(f.rateGlued(12_480)).toBe("12.5 k/s");
  });
  test("a rate that is not zero never reads 0", () => {
    expect(f.rate(0)).toBe("0 /s");
    expect(f.rate(0.01)).toBe("< 0.1 /s");
  });
  test("a net rate carries its sign", () => {
    expect(f.rateNet(4.5)).toBe("+4.5 /s");
    expect(f.rateNet(-4.5)).toBe("−4.5 /s");
    expect(f.rateNet(0)).toBe("0 /s");
  });
});

describe("durations", () => {
  test("three significant digits in µs, ms and s", () => {
    expect(f.duration(300_000)).toBe("0.3 ms");
    expect(f.duration(312_400)).toBe("0.312 ms");
    expect(f.duration(84_200)).toBe("84.2 µs");
    expect(f.duration(4.2 * MS)).toBe("4.20 ms");
    expect(f.duration(187 * MS)).toBe("187 ms");
    expect(f.duration(3 * S)).toBe("3.00 s");
    expect(f.duration(30.2 * S)).toBe("30.2 s");
  });
  test("never zero milliseconds", () => {
    expect(f.duration(0)).toBe("< 1 µs");
    expect(f.duration(999)).toBe("< 1 µs");
    expect(f.duration(1000)).toBe("1.00 µs");
  });
  test("from a minute and from an hour", () => {
    expect(f.duration(64 * S)).toBe("1 min 04 s");
    expect(f.duration(60 * S)).toBe("1 min 00 s");
    expect(f.duration(3 * 3600 * S + 12 * 60 * S)).toBe("3 h 12 min");
  });
  test("rounding never shows a full next unit", () => {
    expect(f.duration(999.6 * MS)).toBe("1.00 s");
    expect(f.duration(999_800)).toBe("1.00 ms");
    expect(f.duration(59.97 * S)).toBe("1 min 00 s");
    expect(f.duration(3599.9 * S)).toBe("1 h 00 min");
  });
  test("the short form for the map", () => {
    expect(f.durationShort(38.4 * MS)).toBe("38 ms");
    expect(f.durationShort(1.72 * S)).toBe("1.7 s");
    expect(f.durationShort(4 * MS)).toBe("4 ms");
    expect(f.durationShort(300_000)).toBe("0.3 ms");
    expect(f.durationShort(999.7 * MS)).toBe("1 s");
  });
});

describe("clock", () => {
  const at = Date.UTC(2026, 10, 30, 14, 31, 34, 117) * 1000;
  const now = Date.UTC(2026, 10, 30, 15, 0, 0) * 1000;
  test("lists show milliseconds, events seconds", () => {
    expect(f.clockMs(at, "utc")).toBe("14:31:34.117");
    expect(f.clock(at, now, "utc")).toBe("14:31:34");
  });
  test("another day is named", () => expect(f.clock(at - 86_400e6, now, "utc")).toBe("29 Nov 14:31"));
  test("the tooltip names the zone", () => expect(f.clockFull(at, "utc")).toBe("30 Nov 2026 14:31:34.117 UTC"));
  test("axis labels show seconds only when the step needs them", () => {
    expect(f.clockAxis(at, 60, "utc")).toBe("14:31");
    expect(f.clockAxis(at, 15, "utc")).toBe("14:31:34");
  });
  test("ago", () => {
    expect(f.ago(33)).toBe("33 s ago");
    expect(f.ago(64)).toBe("1 min 04 s ago");
  });
  test("up for", () => {
    expect(f.upFor(42)).toBe("42 s");
    expect(f.upFor(11_520)).toBe("3 h 12 min");
  });
});

describe("bytes", () => {
  test("binary units with three significant digits", () => {
    expect(f.bytes(449)).toBe("449 B");
    expect(f.bytes(538 * 1024)).toBe("538 KiB");
    expect(f.bytes(1.21 * 1024 ** 3)).toBe("1.21 GiB");
    expect(f.bytes(41 * 1024 ** 2)).toBe("41.0 MiB");
    expect(f.bytes(1010 * 1024)).toBe("1010 KiB");
    expect(f.bytes(1024 ** 2 - 1)).toBe("1.00 MiB");
  });
  test("used of a maximum shares the unit", () => {
    expect(f.bytesOf(1.21 * 1024 ** 3, 2 * 1024 ** 3)).toEqual({ used: "1.21", max: "2 GiB" });
    expect(f.bytesOf(0.1 * 1024 ** 2, 256 * 1024 ** 2)).toEqual({ used: "0.1", max: "256 MiB" });
    expect(f.bytesOf(20, 256 * 1024 ** 2)).toEqual({ used: "< 0.1", max: "256 MiB" });
  });
});

describe("shares", () => {
  test("one decimal below ten, whole above, a space before the sign", () => {
    expect(f.share(0.002)).toBe("0.2 %");
    expect(f.share(0.94)).toBe("94 %");
    expect(f.share(0)).toBe("0 %");
    expect(f.share(1)).toBe("100 %");
  });
  test("neither nothing nor everything is rounded into a lie", () => {
    expect(f.share(0.0002)).toBe("< 0.1 %");
    expect(f.share(0.9997)).toBe("> 99 %");
    expect(f.share(0.0996)).toBe("10 %");
  });
});

test("a change shows old and new and says a shared unit once", () => {
  expect(f.change("62 ms", "180 ms")).toBe("62 → 180 ms");
  expect(f.change("900 ms", "1.2 s")).toBe("900 ms → 1.2 s");
});

test("unknown is a dash everywhere", () => {
  const writers = [
    f.count,
    f.countShort,
    f.rate,
    f.rateCell,
    f.rateGlued,
    f.rateNet,
    f.duration,
    f.durationShort,
    f.upFor,
    f.ago,
    f.bytes,
    f.share,
  ];
  for (const write of writers)
    for (const v of [null, undefined, Number.NaN, Number.POSITIVE_INFINITY]) expect(write(v)).toBe("–");
  expect(f.clock(null)).toBe("–");
  expect(f.clockMs(undefined)).toBe("–");
});

test("ids keep seven characters, names keep their last segment", () => {
  expect(f.shortId("4bf92f3577b34da6")).toBe("4bf92f3");
  expect(f.cutMiddle("worker.orders", 20)).toBe("worker.orders");
  expect(f.cutMiddle("warehouse.reservations.europe.orders", 20)).toBe("warehouse.re….orders");
  expect(f.cutMiddle("reservations-of-everything", 12)).toBe("reser…ything");
});

test("a path or name keeps its beginning and its last segments", () => {
  expect(f.splitMiddle("GET /HelloWorld/Greeter/SayHello")).toEqual(["GET /HelloWorld/Greeter", "/SayHello"]);
  expect(f.splitMiddle("GET /catalog/products/sencha")).toEqual(["GET /catalog/products", "/sencha"]);
  expect(f.splitMiddle("worker.orders")).toEqual(["worker", ".orders"]);
  expect(f.splitMiddle("amqp-0f3a9c1b7d5e4a62b1908c7d6e5f4a3b")).toEqual(["amqp-0f3a9c1b7d5e4a62b190", "8c7d6e5f4a3b"]);
  expect(f.splitMiddle("orders")).toEqual(["orders", ""]);
});

test("plurals", () => {
  expect(f.plural(1, "service")).toBe("1 service");
  expect(f.plural(6, "service")).toBe("6 services");
});
