import type { Micros, Nanos, Tone } from "../api/types";
import { useNowUs } from "../live/hooks";
import * as f from "./format";
import { toneClass, Unknown } from "./Num";
import { useZone } from "./zone";

/** A clock time: `list` with milliseconds, `event` with seconds. The full date and zone are in the tooltip. */
export function Time({ at, as = "event" }: { at: Micros | null | undefined; as?: "list" | "event" }) {
  const zone = useZone();
  if (at === null || at === undefined) return <Unknown />;
  const text = as === "list" ? f.clockMs(at, zone) : f.clock(at, Date.now() * 1000, zone);
  return (
    <time className="mono" dateTime={new Date(at / 1000).toISOString()} title={f.clockFull(at, zone)}>
      {text}
    </time>
  );
}

/** A length of time in three significant digits, or two in narrow cells. */
export function Duration({
  ns,
  tone = "normal",
  short = false,
  why,
}: {
  ns: Nanos | null | undefined;
  tone?: Tone | undefined;
  short?: boolean;
  why?: string;
}) {
  if (ns === null || ns === undefined) return <Unknown why={why} />;
  return <span className={toneClass(tone)}>{short ? f.durationShort(ns) : f.duration(ns)}</span>;
}

/** How long since: "3 h 12 min". The clock time is in the tooltip. */
export function Since({ at, suffix = "" }: { at: Micros | null | undefined; suffix?: string }) {
  const now = useNowUs();
  const zone = useZone();
  if (at === null || at === undefined) return <Unknown />;
  return <span title={f.clockFull(at, zone)}>{`${f.upFor(Math.max(0, (now - at) / 1e6))}${suffix}`}</span>;
}
