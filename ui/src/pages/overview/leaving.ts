// What has just left the map: it fades out where it last stood, and is forgotten a beat later. Pure but for the hook at the end.

import { useState } from "react";

/** Longer than the fade. */
const KEPT_MS = 900;

export interface Left<T> {
  thing: T;
  since_ms: number;
}
export type Leaving<T> = ReadonlyMap<string, Left<T>>;

/** Those that stood before and no longer do, with those that are still on their way out; what is back is not among them. */
export function leave<T>(
  before: ReadonlyMap<string, T>,
  now: ReadonlyMap<string, T>,
  leaving: Leaving<T>,
  at_ms: number,
): Leaving<T> {
  const next = new Map([...leaving].filter(([key, left]) => !now.has(key) && at_ms - left.since_ms < KEPT_MS));
  for (const [key, thing] of before) if (!now.has(key)) next.set(key, { thing, since_ms: at_ms });
  return next.size === 0 && leaving.size === 0 ? leaving : next;
}

interface Seen<T> {
  scope: string;
  shown: ReadonlyMap<string, T>;
  leaving: Leaving<T>;
}

/** What left `shown` a moment ago. Another scope begins with nothing. */
export function useLeaving<T>(scope: string, shown: ReadonlyMap<string, T>): T[] {
  const [seen, setSeen] = useState<Seen<T>>({ scope, shown, leaving: new Map() });
  if (seen.scope !== scope) setSeen({ scope, shown, leaving: new Map() });
  else if (seen.shown !== shown)
    setSeen({ scope, shown, leaving: leave(seen.shown, shown, seen.leaving, performance.now()) });
  return [...seen.leaving.values()].map((left) => left.thing);
}
