// A long list that the server filters and sorts: only the rows on the screen and some around them are fetched, once a second.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useCallback, useMemo, useRef, useState } from "react";
import { problemFrom } from "../api/client";
import type { Problem } from "../api/types";
import { holdOrder } from "../parts/columns";
import type { Stretch } from "../parts/Table";
import { usePaused } from "./hooks";

/** Rows fetched at once, and the step in which the first of them moves. */
const WINDOW = 200;
const STEP = 50;

export interface Fetched<T> {
  rows: T[];
  /** Length of the whole list. */
  total: number;
}
interface StretchWish<T, F extends Fetched<T>> {
  /** What identifies the list: another one begins at its top. */
  key: readonly unknown[];
  fetch: (from: number, count: number, signal: AbortSignal) => Promise<F>;
  keyOf: (row: T) => string;
  /** Milliseconds between looks; false holds still. */
  every?: number | false;
  enabled?: boolean;
}
export interface UsedStretch<T, F extends Fetched<T>> {
  rows: readonly T[];
  answer: F | null;
  stretch: Stretch;
  problem: Problem | null;
  pending: boolean;
  refetch: () => void;
}

/** The first row of the window that shows `[from, to)`; the present one if that does already. */
export function windowFor(present: number, from: number, to: number): number {
  if (from >= present && to <= present + WINDOW) return present;
  const spare = Math.max(0, Math.floor((WINDOW - (to - from)) / 2));
  return Math.max(0, Math.floor((from - spare) / STEP) * STEP);
}

export function useStretch<T, F extends Fetched<T> = Fetched<T>>(wish: StretchWish<T, F>): UsedStretch<T, F> {
  const { key, fetch, keyOf, every = 1000, enabled = true } = wish;
  const signature = JSON.stringify(key);
  const [place, setPlace] = useState({ signature, first: 0 });
  const first = place.signature === signature ? place.first : 0;
  const [held, setHeld] = useState(false);
  const paused = usePaused();
  const { data, error, refetch, isPending } = useQuery({
    queryKey: [...key, "stretch", first],
    queryFn: async ({ signal }) => ({ answer: await fetch(first, WINDOW, signal), from: first, signature }),
    refetchInterval: paused.has("key") ? false : every,
    placeholderData: keepPreviousData,
    enabled,
  });
  const order = useRef<{ list: string; keys: string[] }>({ list: "", keys: [] });
  const list = `${data?.signature} ${data?.from}`;
  const rows = useMemo(() => {
    const fresh: readonly T[] = data?.answer.rows ?? [];
    // A held order keeps its rows; one that has come meanwhile waits outside.
    const still = held && order.current.list === list;
    return still ? holdOrder(fresh, keyOf, order.current.keys).slice(0, fresh.length) : fresh;
  }, [data, held, keyOf, list]);
  order.current = { list, keys: rows.map(keyOf) };
  const want = useCallback(
    (from: number, to: number) =>
      setPlace((now) => {
        const present = now.signature === signature ? now.first : 0;
        const next = windowFor(present, from, to);
        return next === now.first && now.signature === signature ? now : { signature, first: next };
      }),
    [signature],
  );
  const stretch = useMemo(
    () => ({ from: data?.from ?? 0, total: data?.answer.total ?? 0, want, hold: setHeld }),
    [data, want],
  );
  return {
    rows,
    answer: data?.answer ?? null,
    stretch,
    problem: error ? problemFrom(error) : null,
    pending: isPending,
    refetch: () => void refetch(),
  };
}
