// The only place that turns numbers, times and sizes into text (ui.md §9). Pure, so that canvas parts and the
// components Num, Time and Bytes share it. Unknown is always "–": never 0, never blank, never NaN.

import type { Micros, Nanos } from "../api/types";

export const UNKNOWN = "–";
const THIN_TABLE_MAX = 9_999_999;
const SEPARATED_SHORT_MAX = 9_999;
const COUNT_UNITS = ["", " k", " M", " G", " T"] as const;
const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

const known = (v: number | null | undefined): v is number => typeof v === "number" && Number.isFinite(v);
const separators = (v: number): string => Math.round(v).toLocaleString("en-US");

/** Three significant digits without an exponent. */
function three(v: number): string {
  const rounded = Number(v.toPrecision(3));
  const whole = Math.floor(Math.log10(Math.max(rounded, 1e-9))) + 1;
  return rounded.toFixed(Math.max(0, Math.min(2, 3 - Math.max(1, whole))));
}

/** Steps a value through units of `base` so that rounding never shows a full next unit ("1000 ms"). */
function scale(v: number, base: number, units: number): { v: number; unit: number } {
  let unit = 0;
  let rest = v;
  const shown = (x: number) => (x >= 1000 ? Math.round(x) : Number(x.toPrecision(3)));
  while (unit < units - 1 && shown(rest) >= base) {
    rest /= base;
    unit += 1;
  }
  return { v: rest, unit };
}

/** Counts in tables: every digit, with separators, to 9,999,999. */
export function count(v: number | null | undefined): string {
  if (!known(v)) return UNKNOWN;
  return Math.abs(v) <= THIN_TABLE_MAX ? separators(v) : countShort(v);
}

/** Counts in heads and ledgers: three significant digits with a space and k, M, G; small ones whole. */
export function countShort(v: number | null | undefined): string {
  if (!known(v)) return UNKNOWN;
  if (Math.abs(v) <= SEPARATED_SHORT_MAX) return separators(v);
  const s = scale(Math.abs(v), 1000, COUNT_UNITS.length);
  return `${v < 0 ? "−" : ""}${three(s.v)}${COUNT_UNITS[s.unit]}`;
}

function rateDigits(v: number, detail: boolean): string {
  if (v === 0) return "0";
  const size = Math.abs(v);
  if (size < 0.05) return "< 0.1";
  if (size >= 99.5) return separators(v);
  if (size >= 9.95) return detail ? v.toFixed(1) : v.toFixed(0);
  return v.toFixed(1);
}

/** A rate without its unit, for table cells whose head says "/s". */
export function rateCell(v: number | null | undefined): string {
  return known(v) ? rateDigits(v, false) : UNKNOWN;
}

/** A rate in text: "412 /s", "41.3 /s", "4.5 /s". */
export function rate(v: number | null | undefined): string {
  return known(v) ? `${rateDigits(v, true)} /s` : UNKNOWN;
}

/** Larger rates would not fit their place on the map. */
const GLUED_SEPARATED_MAX = 10_000;

/** A rate on the map: unit glued, whole from ten up. */
export function rateGlued(v: number | null | undefined): string {
  if (!known(v)) return UNKNOWN;
  return v >= GLUED_SEPARATED_MAX ? `${countShort(v)}/s` : `${rateDigits(v, false)}/s`;
}

/** A signed rate: "+4.5 /s". */
export function rateNet(v: number | null | undefined): string {
  if (!known(v)) return UNKNOWN;
  if (Math.abs(v) < 0.05) return "0 /s";
  return `${v > 0 ? "+" : "−"}${rateDigits(Math.abs(v), true)} /s`;
}

const US = 1_000;
const MS = 1_000_000;
const S = 1_000_000_000;

function longDuration(seconds: number): string {
  const whole = Math.round(seconds);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  if (hours > 0) return `${separators(hours)} h ${String(minutes).padStart(2, "0")} min`;
  return `${minutes} min ${String(whole % 60).padStart(2, "0")} s`;
}

/** Three significant digits in µs, ms or s; from a minute "1 min 04 s", from an hour "3 h 12 min". Never "0 ms". */
export function duration(ns: Nanos | null | undefined): string {
  if (!known(ns)) return UNKNOWN;
  if (ns < US) return "< 1 µs";
  const exact = Number(ns.toPrecision(3));
  if (exact >= 60 * S || ns / S >= 59.95) return longDuration(ns / S);
  if (exact >= S) return `${three(ns / S)} s`;
  if (exact >= MS) return `${three(ns / MS)} ms`;
  // From a tenth of a millisecond the unit stays ms, so that a column of fast calls reads in one unit.
  if (exact >= 100 * US) return `${Number((ns / MS).toPrecision(3))} ms`;
  return `${three(ns / US)} µs`;
}

/** The same for the map and narrow cells: two significant digits, whole from ten up. */
export function durationShort(ns: Nanos | null | undefined): string {
  if (!known(ns)) return UNKNOWN;
  if (ns < US) return "< 1 µs";
  if (ns / S >= 59.5) return longDuration(ns / S);
  const short = (v: number) => (v >= 9.95 ? v.toFixed(0) : String(Number(v.toFixed(1))));
  if (ns >= 999.5 * MS) return `${short(ns / S)} s`;
  if (ns >= 100 * US) return `${short(ns / MS)} ms`;
  return `${short(ns / US)} µs`;
}

/** How long something has stood: whole seconds below a minute. */
export function upFor(seconds: number | null | undefined): string {
  if (!known(seconds)) return UNKNOWN;
  return seconds < 59.5 ? `${Math.max(0, Math.round(seconds))} s` : longDuration(seconds);
}

/** Only with the clock time beside it or in its tooltip. */
export function ago(seconds: number | null | undefined): string {
  return known(seconds) ? `${upFor(seconds)} ago` : UNKNOWN;
}

export type Zone = "local" | "utc";
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const pad = (v: number, n = 2): string => String(v).padStart(n, "0");

interface Parts {
  year: number;
  month: number;
  day: number;
  h: number;
  m: number;
  s: number;
  ms: number;
}

function partsOf(us: Micros, zone: Zone): Parts {
  const d = new Date(us / 1000);
  const ms = Math.floor((((us % 1_000_000) + 1_000_000) % 1_000_000) / 1000);
  return zone === "utc"
    ? {
        year: d.getUTCFullYear(),
        month: d.getUTCMonth(),
        day: d.getUTCDate(),
        h: d.getUTCHours(),
        m: d.getUTCMinutes(),
        s: d.getUTCSeconds(),
        ms,
      }
    : {
        year: d.getFullYear(),
        month: d.getMonth(),
        day: d.getDate(),
        h: d.getHours(),
        m: d.getMinutes(),
        s: d.getSeconds(),
        ms,
      };
}

/** Lists: HH:MM:SS.mmm. */
export function clockMs(us: Micros | null | undefined, zone: Zone = "local"): string {
  if (!known(us)) return UNKNOWN;
  const p = partsOf(us, zone);
  return `${pad(p.h)}:${pad(p.m)}:${pad(p.s)}.${pad(p.ms, 3)}`;
}

/** Events: HH:MM:SS, and another day as "29 Nov 14:31". */
export function clock(us: Micros | null | undefined, nowUs: Micros = Date.now() * 1000, zone: Zone = "local"): string {
  if (!known(us)) return UNKNOWN;
  const p = partsOf(us, zone);
  const now = partsOf(nowUs, zone);
  if (p.year === now.year && p.month === now.month && p.day === now.day) return `${pad(p.h)}:${pad(p.m)}:${pad(p.s)}`;
  return `${p.day} ${MONTHS[p.month]} ${pad(p.h)}:${pad(p.m)}`;
}

/** Axis and tape labels: HH:MM, or HH:MM:SS when the step is below a minute. */
export function clockAxis(us: Micros, stepSeconds = 60, zone: Zone = "local"): string {
  const p = partsOf(us, zone);
  return stepSeconds < 60 ? `${pad(p.h)}:${pad(p.m)}:${pad(p.s)}` : `${pad(p.h)}:${pad(p.m)}`;
}

/** For tooltips: everything, with the zone. */
export function clockFull(us: Micros, zone: Zone = "local"): string {
  const p = partsOf(us, zone);
  const name = zone === "utc" ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone;
  return `${p.day} ${MONTHS[p.month]} ${p.year} ${clockMs(us, zone)} ${name}`;
}

/** Binary units, three significant digits. */
export function bytes(v: number | null | undefined): string {
  if (!known(v)) return UNKNOWN;
  if (v < 1024) return `${Math.round(v)} B`;
  const s = scale(v, 1024, BYTE_UNITS.length);
  return `${threeOfBytes(s.v)} ${BYTE_UNITS[s.unit]}`;
}

/** Between 1000 and 1023 three significant digits would round away whole units: four are shown. */
function threeOfBytes(v: number): string {
  return v >= 999.5 ? v.toFixed(0) : three(v);
}

/** One number of two with a shared unit: "1.21 of 2 GiB" is bytesOf(used, max). */
export function bytesOf(
  used: number | null | undefined,
  max: number | null | undefined,
): { used: string; max: string } {
  if (!known(used) || !known(max)) return { used: bytes(used), max: bytes(max) };
  const s = scale(max, 1024, BYTE_UNITS.length);
  const inUnit = used / 1024 ** s.unit;
  const text = used === 0 ? "0" : inUnit < 0.1 ? "< 0.1" : String(Number(inUnit.toPrecision(3)));
  return { used: text, max: `${Number(three(s.v))} ${BYTE_UNITS[s.unit]}` };
}

/** Space before %, one decimal below 10, whole above; what is not zero never reads "0 %", what is not all never "100 %". */
export function share(v: number | null | undefined): string {
  if (!known(v)) return UNKNOWN;
  if (v === 0) return "0 %";
  const percent = v * 100;
  if (percent > 0 && percent < 0.05) return "< 0.1 %";
  if (percent < 9.95) return `${Number(percent.toFixed(1))} %`;
  if (percent < 100 && percent >= 99.5) return "> 99 %";
  return `${percent.toFixed(0)} %`;
}

/** Old and new with an arrow; a unit both share is said once: "62 → 180 ms". */
export function change(before: string, after: string): string {
  const [, oldUnit] = splitUnit(before);
  const [, newUnit] = splitUnit(after);
  return oldUnit === newUnit && oldUnit !== "" ? `${splitUnit(before)[0]} → ${after}` : `${before} → ${after}`;
}

function splitUnit(text: string): [string, string] {
  const at = text.lastIndexOf(" ");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

/** Ids keep their first seven characters. */
export const shortId = (id: string): string => id.slice(0, 7);

/** At most so much of a path or name is kept at its end. */
const TAIL_MAX = 12;

/** The beginning, and the last segments of a path or name: what stays when its middle goes. Text of few letters has no tail. */
export function splitMiddle(text: string, max = TAIL_MAX): [head: string, tail: string] {
  if (text.length <= Math.min(max, TAIL_MAX)) return [text, ""];
  const least = Math.max(2, text.length - max);
  for (let at = least; at < text.length - 2; at += 1) {
    if ("/.:-_ ".includes(text.charAt(at))) return [text.slice(0, at), text.slice(at)];
  }
  const at = Math.max(least, Math.floor(text.length / 2));
  return [text.slice(0, at), text.slice(at)];
}

/** Where only characters can be counted: the same cut, with what is left out as "…". */
export function cutMiddle(text: string, max: number): string {
  if (text.length <= max) return text;
  const [, tail] = splitMiddle(text, Math.floor(max / 2));
  return `${text.slice(0, Math.max(0, max - 1 - tail.length))}…${tail}`;
}

/** Names lose their end. */
export const cutEnd = (text: string, max: number): string =>
  text.length <= max ? text : `${text.slice(0, Math.max(1, max - 1))}…`;

/** "1 service", "6 services". */
export const plural = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;
