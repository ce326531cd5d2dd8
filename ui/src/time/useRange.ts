// The range for components: read from the URL, moving with the beat while live.

import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import type { Micros } from "../api/types";
import { useNowUs } from "../live/hooks";
import { type Range, type RangeSearch, readRange } from "./range";

export interface UsedRange extends Range {
  /** Changes when the reader chooses another range, not as time passes. */
  key: string;
  now_us: Micros;
}

export function useRangeSearch(): RangeSearch {
  const search = useSearch({ strict: false }) as RangeSearch;
  const { last, end, from, to } = search;
  return useMemo(() => ({ last, end, from, to }), [last, end, from, to]);
}

/** `stepS` slows a live range down: its ends move in steps of so many seconds, so that requests are not made anew each beat. */
export function useRange(stepS = 1): UsedRange {
  const search = useRangeSearch();
  const now = useNowUs();
  const stepped = stepS <= 1 ? now : Math.ceil(now / (stepS * 1e6)) * stepS * 1e6;
  return useMemo(
    () => ({ ...readRange(search, stepped), key: JSON.stringify(search), now_us: now }),
    [search, stepped, now],
  );
}

/** Chooses another range: the given parts of it change, the rest of the URL stays. */
export function useSetRange(): (next: RangeSearch, replace?: boolean) => void {
  const navigate = useNavigate();
  return useCallback(
    (next, replace = false) => void navigate({ to: ".", search: (s: object) => ({ ...s, ...next }), replace } as never),
    [navigate],
  );
}

/** The space of the page; `/` unless the URL says otherwise. */
export function useSpace(): string {
  const search = useSearch({ strict: false }) as { space?: string };
  return search.space ?? "/";
}
