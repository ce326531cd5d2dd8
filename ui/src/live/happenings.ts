// The newest happenings, for lists of a few lines.

import { useEffect } from "react";
import type { Happening } from "../api/types";
import { useRows } from "./hooks";

const KEPT = 2000;
/** New ones come with every notice; older ones are asked for. */
const TAIL = 60;

/** Newest first. `total` counts everything kept by the page, to say how many there are. */
export function useHappenings(limit: number): { rows: Happening[]; total: number; begun: boolean } {
  const [feed, view] = useRows<Happening>({ channel: "happenings", backfill: KEPT }, { capacity: KEPT });
  useEffect(() => feed.follow(TAIL), [feed]);
  useEffect(() => {
    feed.want(view.next - limit, view.next);
  }, [feed, view, limit]);
  const rows: Happening[] = [];
  for (let at = view.next - 1; at >= view.first && rows.length < limit; at -= 1) {
    const row = feed.peek(at)?.row;
    if (row) rows.push(row);
  }
  return { rows, total: view.next - view.first, begun: view.begun };
}
