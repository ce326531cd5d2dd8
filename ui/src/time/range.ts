// The time range, held in the URL: a window the tape shows (a length, and an end unless it is now) and inside it an optional
// brush, which is the range of every view. Pure.

import type { Micros } from "../api/types";

export const WINDOW_DEFAULT_S = 900;
export const WINDOW_MIN_S = 30;
export const WINDOW_MAX_S = 7 * 86_400;
export const TAPE_BUCKETS = 180;

/** Search parameters of every page. Absent values are the defaults. */
export interface RangeSearch {
  /** Length of the window: `15m`, `90s`, `6h`. */
  last?: string | undefined;
  /** End of the window in Unix milliseconds; absent when it is now. */
  end?: number | undefined;
  /** The brush in Unix milliseconds; `to` is absent when it reaches to now. */
  from?: number | undefined;
  to?: number | undefined;
}
export interface Span {
  from_us: Micros;
  to_us: Micros;
  /** The end is now and moves. */
  live: boolean;
}
export interface Range {
  window: Span;
  brush: Span | null;
  /** What every view shows: the brush, else the window. */
  span: Span;
}

const UNITS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 };

export function parseLength(text: string | undefined): number {
  const m = /^(\d+(?:\.\d+)?)([smhd])$/.exec(text ?? "");
  if (!m) return WINDOW_DEFAULT_S;
  return Math.min(WINDOW_MAX_S, Math.max(WINDOW_MIN_S, Number(m[1]) * (UNITS[m[2] as string] as number)));
}
export function writeLength(seconds: number): string | undefined {
  const s = Math.round(Math.min(WINDOW_MAX_S, Math.max(WINDOW_MIN_S, seconds)));
  if (s === WINDOW_DEFAULT_S) return undefined;
  for (const [unit, size] of [
    ["d", 86_400],
    ["h", 3600],
    ["m", 60],
  ] as const)
    if (s % size === 0) return `${s / size}${unit}`;
  return `${s}s`;
}
/** "15 min", "1 h", "90 s". */
export function lengthWords(seconds: number): string {
  const s = Math.round(seconds);
  if (s % 86_400 === 0) return `${s / 86_400} d`;
  if (s % 3600 === 0) return `${s / 3600} h`;
  if (s % 60 === 0) return `${s / 60} min`;
  return s > 120 ? `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, "0")} s` : `${s} s`;
}

export function readRange(search: RangeSearch, nowUs: Micros): Range {
  const length = parseLength(search.last) * 1e6;
  const end = search.end === undefined ? nowUs : Math.min(search.end * 1000, nowUs);
  const window = { from_us: end - length, to_us: end, live: search.end === undefined };
  if (search.from === undefined) return { window, brush: null, span: window };
  const to = search.to === undefined ? nowUs : search.to * 1000;
  const brush = { from_us: Math.min(search.from * 1000, to), to_us: to, live: search.to === undefined };
  return { window, brush, span: brush };
}

/** Zooms the window by `factor` around a time that stays where it is; an end close to now snaps to now. */
export function zoom(range: Range, at: Micros, factor: number, nowUs: Micros): RangeSearch {
  const { from_us, to_us } = range.window;
  const length = Math.min(WINDOW_MAX_S, Math.max(WINDOW_MIN_S, ((to_us - from_us) / 1e6) * factor)) * 1e6;
  const k = (at - from_us) / (to_us - from_us);
  const end = Math.min(nowUs, at + (1 - k) * length);
  const live = range.window.live ? factor > 1 || nowUs - end < length * 0.25 : nowUs - end < length * 0.02;
  return {
    last: writeLength(length / 1e6),
    end: live ? undefined : Math.round(end / 1000),
    from: undefined,
    to: undefined,
  };
}

/** A dragged span as a brush; its end becomes "now" when it reaches the live end. */
export function brushed(range: Range, a: Micros, b: Micros): RangeSearch {
  const from = Math.max(Math.min(a, b), range.window.from_us);
  const to = Math.min(Math.max(a, b), range.window.to_us);
  const reachesNow = range.window.live && range.window.to_us - to < (range.window.to_us - range.window.from_us) * 0.008;
  return { from: Math.round(from / 1000), to: reachesNow ? undefined : Math.round(to / 1000) };
}

/** Round steps for axis labels, in seconds. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400];
export function timeStep(spanSeconds: number, labels: number): number {
  return STEPS.find((step) => spanSeconds / step <= labels) ?? 86_400;
}
/** Times of the labels: round in the local zone, inside the span and not under its edges. */
export function timeTicks(span: { from_us: Micros; to_us: Micros }, labels: number): { at: Micros[]; step: number } {
  const seconds = (span.to_us - span.from_us) / 1e6;
  const step = timeStep(seconds, labels);
  const offset = -new Date(span.to_us / 1000).getTimezoneOffset() * 60;
  const first = Math.ceil((span.from_us / 1e6 + offset) / step) * step - offset;
  const at: Micros[] = [];
  for (let t = first; t * 1e6 < span.to_us; t += step) at.push(t * 1e6);
  return { at, step };
}
