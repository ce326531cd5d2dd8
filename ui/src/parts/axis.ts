// Labels of value axes: short, round, with the unit where it is not in the head.

import { bytes, countShort, durationShort, share } from "./format";

export const axisNumber = (v: number): string => {
  if (v >= 1000) return trimmed(countShort(v < 10_000 ? Math.round(v / 10) * 10 : v), v);
  return String(Number(v.toPrecision(3)));
};
/** 1,500 on an axis is "1.5 k". */
function trimmed(text: string, v: number): string {
  return v < 10_000 ? `${Number((v / 1000).toPrecision(3))} k` : text.replace(/\.0+ /, " ");
}
export const axisShare = (v: number): string => (v === 0 ? "0 %" : share(v));
export const axisDuration = (ns: number): string => (ns === 0 ? "0" : durationShort(ns));
export const axisBytes = (v: number): string => (v === 0 ? "0" : bytes(v).replace(/\.0+ /, " "));
