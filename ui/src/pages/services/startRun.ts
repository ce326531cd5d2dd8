// The start of supervised instances as a waterfall, read from happenings: starting, then ready. Pure.

import type { Happening, Micros } from "../../api/types";

export interface StartBar {
  instance: string;
  service: string;
  starting_us: Micros;
  /** Null while it has not become ready. */
  ready_us: Micros | null;
  failed: boolean;
}
export interface Startup {
  from_us: Micros;
  to_us: Micros;
  bars: StartBar[];
  allReady: boolean;
}

/** Starts further apart than this belong to another run. */
const RUN_GAP_US = 30e6;

/** The first run since reactor itself began, or the newest run when that one is not known any more. */
export function startupOf(newestFirst: readonly Happening[]): Startup | null {
  const events = [...newestFirst]
    .reverse()
    .filter((h) => h.service !== null && /^instance\.(starting|ready|exited|failing)$/.test(h.name));
  const bars: StartBar[] = [];
  for (const h of events) {
    const instance = /^(\S+)/.exec(h.line)?.[1] as string;
    const known = bars.find((b) => b.instance === instance);
    if (h.name === "instance.starting") {
      if (known) continue;
      if (bars.length > 0 && h.at_us - latest(bars) > RUN_GAP_US) break;
      bars.push({ instance, service: h.service as string, starting_us: h.at_us, ready_us: null, failed: false });
    } else if (known && known.ready_us === null) {
      if (h.name === "instance.ready") known.ready_us = h.at_us;
      else known.failed = true;
    }
  }
  if (bars.length === 0) return null;
  const from = Math.min(...bars.map((b) => b.starting_us));
  const allReady = bars.every((b) => b.ready_us !== null);
  return { from_us: from, to_us: Math.max(latest(bars), from + 1e5), bars, allReady };
}

const latest = (bars: readonly StartBar[]): Micros => Math.max(...bars.map((b) => b.ready_us ?? b.starting_us));

/** Round steps of seconds for the axis. */
export function axisSteps(seconds: number): number[] {
  const step = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60].find((s) => seconds / s <= 7) ?? 120;
  const out: number[] = [];
  for (let i = 0; i * step <= seconds * 1.0001; i += 1) out.push(Number((i * step).toFixed(2)));
  return out;
}
