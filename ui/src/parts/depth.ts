// How full a channel of rods is: a log scale from one message to the limit. Pure.

import type { Tone } from "../api/types";

/** Without a limit the channel reaches to a hundred thousand. */
export const OPEN_END = 100_000;

export function channelShare(ready: number, limit: number | null): number {
  if (ready <= 0) return 0;
  const end = Math.log10(Math.max(10, limit ?? Math.max(OPEN_END, ready)));
  return Math.min(1, Math.log10(Math.max(1, ready)) / end);
}
/** Rods that are lit: one as soon as there is a message, all only when it is full. */
export function channelFill(ready: number, limit: number | null, rods: number): number {
  if (ready <= 0) return 0;
  if (limit !== null && ready >= limit) return rods;
  return Math.min(limit === null ? rods : rods - 1, Math.max(1, Math.round(channelShare(ready, limit) * rods)));
}
export function channelTone(ready: number, limit: number | null, tone: Tone): string {
  if (tone === "err" || (limit !== null && ready >= limit && limit > 0)) return "var(--err-fill)";
  return tone === "warn" ? "var(--warn-fill)" : "var(--chart-2)";
}
