// What stands on the board and how it is written in the URL: `name`, or `name@service`, with `~key` for a grouping; and which
// series of an answer are drawn. Pure.

import type { Instrument, Series } from "../../api/types";
import { plural } from "../../parts/format";

export const BOARD_MAX = 12;
/** Series drawn by themselves; the rest are one line. */
export const SERIES_MAX = 8;

export interface Card {
  name: string;
  service?: string | undefined;
  group?: string | undefined;
}

export function readBoard(text: string | undefined): Card[] {
  if (!text) return [];
  return text
    .split(",")
    .slice(0, BOARD_MAX)
    .flatMap((part) => {
      const m = /^([^@~]+)(?:@([^~]*))?(?:~(.*))?$/.exec(part);
      return m ? [{ name: decode(m[1]), service: decode(m[2]) || undefined, group: decode(m[3]) || undefined }] : [];
    });
}
export function writeBoard(cards: readonly Card[]): string {
  const part = (card: Card) =>
    `${encode(card.name)}${card.service ? `@${encode(card.service)}` : ""}${card.group ? `~${encode(card.group)}` : ""}`;
  return cards.map(part).join(",");
}
const encode = (text: string) => text.replace(/[%,@~]/g, (c) => `%${c.charCodeAt(0).toString(16)}`);
const decode = (text: string | undefined) =>
  (text ?? "").replace(/%(25|2c|40|7e)/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));

/** What a board shows before the reader chose: what the runtime measures itself, then whatever services sent. */
const FIRST = [
  "reactor.gateway.requests",
  "reactor.gateway.duration",
  "reactor.messages.published",
  "reactor.messages.delivered",
];
export function boardOf(text: string | undefined, instruments: readonly Instrument[]): Card[] {
  if (text !== undefined) return readBoard(text);
  const names = instruments.map((i) => i.name);
  const own = FIRST.filter((name) => names.includes(name));
  const rest = names.filter((name) => !name.startsWith("reactor."));
  return [...own, ...rest].slice(0, 6).map((name) => ({ name }));
}

export interface Line {
  label: string;
  service: string;
  values: (number | null)[];
  min?: (number | null)[];
  max?: (number | null)[];
}

const lastKnown = (values: readonly (number | null)[]): number => {
  for (let i = values.length - 1; i >= 0; i -= 1) if (values[i] !== null) return values[i] as number;
  return Number.NEGATIVE_INFINITY;
};

const quantileOf = (s: Series): string | undefined => /p\d+$/.exec(s.name)?.[0];
const WHO = new Set(["service", "instance"]);

/** The largest series by themselves, the rest together as "other". */
export function linesOf(answered: readonly Series[]): Line[] {
  // A histogram answers its rate beside its quantiles: another unit, so not on the same axis.
  const quantiles = answered.filter((s) => quantileOf(s) !== undefined);
  const series = quantiles.length > 0 ? quantiles : answered;
  const several = new Set(series.map((s) => s.service)).size > 1;
  const label = (s: Series) => {
    const labels = Object.entries(s.labels).flatMap(([key, value]) => (WHO.has(key) && !several ? [] : [value]));
    return [...new Set(labels), quantileOf(s)].filter(Boolean).join(" ") || s.service;
  };
  const sorted = [...series].sort((a, b) => lastKnown(b.values) - lastKnown(a.values));
  const line = (s: Series): Line => ({ label: label(s), service: s.service, values: s.values, min: s.min, max: s.max });
  if (sorted.length <= SERIES_MAX) return sorted.map(line);
  const rest = sorted.slice(SERIES_MAX - 1);
  const length = Math.max(...rest.map((s) => s.values.length));
  const values = Array.from({ length }, (_, i) => {
    const known = rest.map((s) => s.values[i]).filter((v): v is number => v !== null && v !== undefined);
    return known.length > 0 ? known.reduce((a, b) => a + b, 0) : null;
  });
  return [...sorted.slice(0, SERIES_MAX - 1).map(line), { label: plural(rest.length, "other"), service: "", values }];
}

export type Unit = "duration" | "bytes" | "share" | "number";
/** How values of a UCUM unit are written. */
export function unitOf(unit: string): Unit {
  if (["s", "ms", "us", "µs", "ns"].includes(unit)) return "duration";
  if (["By", "KiBy", "MiBy"].includes(unit)) return "bytes";
  return unit === "1" ? "share" : "number";
}
