// The newest happenings, for lists of a few lines.

import { useEffect } from "react";
import type { Happening } from "../api/types";
import { useRows } from "./hooks";

const KEPT = 500;

/** Newest first. `total` counts everything kept by the page, to say how many there are. */
export function useHappenings(limit: number): { rows: Happening[]; total: number; begun: boolean } {
  const [feed, view] = useRows<Happening>({ channel: "happenings", backfill: KEPT }, { capacity: 2000 });
  useEffect(() => feed.follow(Math.max(limit, 60)), [feed, limit]);
  const rows: Happening[] = [];
  for (let at = view.next - 1; at >= view.first && rows.length < limit; at -= 1) {
    const row = feed.peek(at)?.row;
    if (row) rows.push(row);
  }
  return { rows, total: view.next - view.first, begun: view.begun };
}
