// What the tape draws: the window's buckets from the API, asked again as live buckets close.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { get } from "../api/client";
import type { Tape } from "../api/types";
import { usePaused } from "../live/hooks";
import { TAPE_BUCKETS } from "./range";
import { useRange } from "./useRange";

export function useTape(): Tape | null {
  const { window } = useRange();
  const paused = usePaused();
  const seconds = Math.round((window.to_us - window.from_us) / 1e6);
  const bucket = Math.max(1, seconds / TAPE_BUCKETS);
  const { data } = useQuery({
    queryKey: ["tape", seconds, window.live ? "now" : window.to_us],
    queryFn: ({ signal }) =>
      get<Tape>("tape", { range_s: seconds, to_us: window.live ? null : Math.round(window.to_us) }, signal),
    refetchInterval: window.live && !paused.has("key") ? Math.min(15_000, Math.max(1000, bucket * 1000)) : false,
    placeholderData: keepPreviousData,
  });
  return data ?? null;
}
