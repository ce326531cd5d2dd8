// Numbers in the page. With Time and Bytes the only components that write values; canvas parts use format.ts directly.

import type { Tone } from "../api/types";
import * as f from "./format";

const WRITERS = {
  count: f.count,
  short: f.countShort,
  rate: f.rate,
  rateCell: f.rateCell,
  rateNet: f.rateNet,
  share: f.share,
} as const;

interface NumProps {
  value: number | null | undefined;
  as?: keyof typeof WRITERS;
  tone?: Tone | undefined;
  /** Why the value is unknown. */
  why?: string;
}

export function Num({ value, as = "count", tone = "normal", why }: NumProps) {
  const text = WRITERS[as](value);
  if (text === f.UNKNOWN) return <Unknown why={why} />;
  return <span className={toneClass(tone, value === 0 && as === "share")}>{text}</span>;
}

export function Unknown({ why }: { why?: string | undefined }) {
  return (
    <span className="meta" title={why ?? "Not known yet"}>
      {f.UNKNOWN}
    </span>
  );
}

/** One rule for colour: the server says warn or err; a zero share steps back. */
export function toneClass(tone: Tone, quiet = false): string | undefined {
  if (tone === "warn" || tone === "err") return tone;
  return quiet ? "meta" : undefined;
}
