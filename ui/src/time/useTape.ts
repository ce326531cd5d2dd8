// What the tape draws. The last 15 minutes come over the live feed bucket by bucket; any other window is asked from the API.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { get } from "../api/client";
import type { Tape } from "../api/types";
import { useChannel, usePaused } from "../live/hooks";
import { TAPE_BUCKETS, WINDOW_DEFAULT_S } from "./range";
import { useRange } from "./useRange";

type Bucket = [number | null, number | null];
type Frame = Pick<Tape, "from_us" | "bucket_us" | "markers" | "gaps">;

/** The live channel's keys put back into one tape. */
export function tapeOf(values: ReadonlyMap<string, unknown>): Tape | null {
  const frame = values.get("frame") as Frame | undefined;
  if (!frame) return null;
  const starts = [...values.keys()].filter((key) => key !== "frame").map(Number);
  starts.sort((a, b) => a - b);
  const from = starts[0] ?? frame.from_us;
  const length = starts.length === 0 ? 0 : Math.round(((starts.at(-1) as number) - from) / frame.bucket_us) + 1;
  const requests: (number | null)[] = Array(length).fill(null);
  const failed: (number | null)[] = Array(length).fill(null);
  for (const start of starts) {
    const i = Math.round((start - from) / frame.bucket_us);
    const [all, bad] = values.get(String(start)) as Bucket;
    requests[i] = all;
    failed[i] = bad;
  }
  return { ...frame, from_us: from, requests, failed };
}

export function useTape(): Tape | null {
  const { window } = useRange();
  const paused = usePaused();
  const { values } = useChannel<unknown>("tape");
  const seconds = Math.round((window.to_us - window.from_us) / 1e6);
  const live = window.live && seconds === WINDOW_DEFAULT_S;
  const bucket = Math.max(1, seconds / TAPE_BUCKETS);
  const { data } = useQuery({
    queryKey: ["tape", seconds, window.live ? "now" : window.to_us],
    queryFn: ({ signal }) =>
      get<Tape>("tape", { range_s: seconds, to_us: window.live ? null : Math.round(window.to_us) }, signal),
    refetchInterval: window.live && !paused.has("key") ? Math.min(15_000, bucket * 1000) : false,
    placeholderData: keepPreviousData,
    enabled: !live,
  });
  const fromFeed = useMemo(() => (live ? tapeOf(values) : null), [live, values]);
  return live ? fromFeed : (data ?? null);
}

const NONE: Pick<Tape, "markers" | "gaps"> = { markers: [], gaps: [] };

/** Changes, exits and gaps, which every chart of the range shows too. The same object until one of them changes. */
export function useMarks(): Pick<Tape, "markers" | "gaps"> {
  const tape = useTape();
  const signature = tape ? JSON.stringify([tape.markers, tape.gaps]) : "";
  // biome-ignore lint/correctness/useExhaustiveDependencies: compared by value
  return useMemo(() => (tape ? { markers: tape.markers, gaps: tape.gaps } : NONE), [signature]);
}
