// Values over time from the API, in the page's range: asked again as buckets close while live.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { get, problemFrom } from "../api/client";
import type { Instrument, Problem, Series, SeriesAnswer } from "../api/types";
import { serverNowUs } from "../live/feed";
import { usePaused } from "../live/hooks";
import type { ChartData, ChartSeries } from "../parts/chart";
import { useRange } from "./useRange";
import { useMarks } from "./useTape";

export interface SeriesWish {
  name: string;
  service?: string | undefined;
  /** Attribute whose values make the series, comma separated. */
  group?: string | undefined;
  query?: string | undefined;
}
export interface SeriesResult {
  answer: SeriesAnswer | null;
  problem: Problem | null;
}

export const POINTS = 180;

/** Names of the instruments that exist: one that has no point yet is not asked for. */
export function useInstruments(): { list: readonly Instrument[]; names: ReadonlySet<string> } {
  const { data } = useQuery({
    queryKey: ["instruments"],
    queryFn: ({ signal }) => get<Instrument[]>("metrics", {}, signal),
    refetchInterval: 10_000,
    placeholderData: keepPreviousData,
  });
  const list = data ?? NO_INSTRUMENTS;
  const names = useMemo(() => new Set(list.map((i) => i.name)), [list]);
  return { list, names };
}
const NO_INSTRUMENTS: readonly Instrument[] = [];

export function useSeries(wish: SeriesWish): SeriesResult {
  const { names } = useInstruments();
  const { span } = useRange();
  const paused = usePaused();
  const seconds = Math.max(1, Math.round((span.to_us - span.from_us) / 1e6));
  const step = Math.max(1, Math.round(seconds / POINTS));
  const to = span.live ? "now" : span.to_us;
  const { data, error } = useQuery({
    queryKey: ["series", wish, seconds, to],
    queryFn: ({ signal }) =>
      get<SeriesAnswer>(
        "metrics/query",
        { ...wish, from_us: Math.round(span.from_us), to_us: Math.round(span.to_us), points: POINTS },
        signal,
      ),
    refetchInterval: span.live && !paused.has("key") ? Math.min(15_000, step * 1000) : false,
    placeholderData: keepPreviousData,
    enabled: names.has(wish.name),
  });
  return { answer: data ?? null, problem: error ? problemFrom(error) : null };
}

/** Factor that turns an instrument's unit into what format.ts writes: nanoseconds, bytes, plain numbers. */
export function unitFactor(unit: string): number {
  return { s: 1e9, ms: 1e6, us: 1e3, µs: 1e3, KiBy: 1024, MiBy: 1024 ** 2 }[unit] ?? 1;
}

export type ChartLine = Omit<ChartSeries, "values"> & { values: readonly (number | null)[] | null | undefined };

/** Lines on the page's range, with its markers and gaps. `frame` says where the buckets stand. */
export function useChartData(
  frame: { from_us: number; bucket_us: number } | null,
  lines: readonly ChartLine[],
): ChartData {
  const { span } = useRange();
  const { markers, gaps } = useMarks();
  return useMemo(() => {
    // The axis moves with the data while live: between answers it would only show an empty right end.
    const length = lines.reduce((n, l) => Math.max(n, l.values?.length ?? 0), 0);
    const end = frame ? frame.from_us + length * frame.bucket_us : span.to_us;
    const width = span.to_us - span.from_us;
    const axis = span.live && frame && length > 0 ? { from_us: end - width, to_us: end } : span;
    return {
      span: axis,
      from_us: frame?.from_us ?? span.from_us,
      bucket_us: frame?.bucket_us ?? 1e6,
      series: lines.map((l) => ({ ...l, values: closed(l.values ?? [], frame, span.live) })),
      markers,
      gaps,
    };
  }, [frame, lines, span, markers, gaps]);
}

/** The bucket that is still filling says too little: while live it is left open. */
export function closed(
  values: readonly (number | null)[],
  frame: { from_us: number; bucket_us: number } | null,
  live: boolean,
): readonly (number | null)[] {
  if (!live || !frame || values.length === 0) return values;
  const end = frame.from_us + values.length * frame.bucket_us;
  return end > serverNowUs() ? [...values.slice(0, -1), null] : values;
}

/** One value a bucket of all series together. */
export function summed(series: readonly Series[] | undefined, factor = 1): (number | null)[] | null {
  const first = series?.[0];
  if (!first) return null;
  return first.values.map((_, i) => {
    let sum: number | null = null;
    for (const s of series) {
      const v = s.values[i];
      if (v !== null && v !== undefined) sum = (sum ?? 0) + v * factor;
    }
    return sum;
  });
}
export const named = (series: readonly Series[] | undefined, name: string): Series[] =>
  (series ?? []).filter((s) => s.name.includes(name));
