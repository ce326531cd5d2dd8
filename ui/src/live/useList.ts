// The broker's long lists: queues, exchanges, connections, channels and consumers of a space, a page at a time.

import { useQuery } from "@tanstack/react-query";
import { useCallback } from "react";
import { get } from "../api/client";
import type { Listed, Queue, QueuePage } from "../api/types";
import { type Fetched, type UsedStretch, useStretch } from "./useStretch";

export interface ListWish {
  space: string;
  q: string | undefined;
  sort: string | undefined;
}
export type ListPath = "queues/page" | "exchanges/page" | "connections/page" | "channels" | "consumers";
export interface Page<T> extends Fetched<T> {
  /** Rows without the filter. */
  all: number;
  /** Messages ready in the queues of the filter. */
  ready: number | null;
}

export function useList<T>(path: ListPath, wish: ListWish, keyOf: (row: T) => string): UsedStretch<T, Page<T>> {
  const { space, q, sort } = wish;
  const fetch = useCallback(
    async (from: number, count: number, signal: AbortSignal): Promise<Page<T>> => {
      const page = await get<Listed<T> & Partial<QueuePage>>(path, { space, q, sort, from, count }, signal);
      return { rows: page.rows, total: page.matched, all: page.total, ready: page.ready ?? null };
    },
    [path, space, q, sort],
  );
  return useStretch({ key: ["list", path, space, q ?? "", sort ?? ""], fetch, keyOf });
}

/** Names of queues for menus; of a great many, those that hold `text`. */
export function useQueueNames(space: string | null, text = ""): readonly Queue[] {
  const { data } = useQuery({
    queryKey: ["queue-names", space, text],
    queryFn: ({ signal }) => get<QueuePage>("queues/page", { space, q: text, count: NAMES }, signal),
    refetchInterval: 5000,
    placeholderData: (before) => before,
  });
  return data?.rows ?? NONE;
}
const NAMES = 500;
const NONE: readonly Queue[] = [];
