// How full a queue is: rods on a log scale from one message to the limit. Small in tables, large on the queue's page.

import { memo } from "react";
import type { Tone } from "../api/types";
import { channelFill, channelShare, channelTone, OPEN_END } from "./depth";
import { count, countShort } from "./format";

interface DepthProps {
  ready: number;
  limit: number | null;
  tone: Tone;
}

const words = (ready: number, limit: number | null): string =>
  `${count(ready)} ready${limit === null ? "" : ` of a limit of ${count(limit)}`}, log scale`;

const SMALL_RODS = 24;
const SMALL_W = 148;

export const DepthSmall = memo(function DepthSmall({ ready, limit, tone }: DepthProps) {
  const fill = channelFill(ready, limit, SMALL_RODS);
  const colour = channelTone(ready, limit, tone);
  return (
    <svg className="depth" width={SMALL_W} height="16" role="img" aria-label={words(ready, limit)}>
      <path d={`M1 0v16M${SMALL_W - 1} 0v16`} stroke="var(--line-3)" strokeWidth="1.5" />
      {Array.from({ length: SMALL_RODS }, (_, i) => (
        <rect key={i} x={6 + i * 5.7} y="2" width="3.7" height="12" rx="1" fill={i < fill ? colour : "var(--line-1)"} />
      ))}
    </svg>
  );
});

const RODS_MAX = 108;
/** Narrower than this a rod is no rod. */
const ROD_PX = 7;
const LABEL_CHAR_PX = 6.2;

/** The channel of the queue page. `peak` is the highest depth of the range. */
export function DepthChannel({ ready, limit, tone, peak, width }: DepthProps & { peak: number | null; width: number }) {
  const rods = Math.min(RODS_MAX, Math.floor((width - 16) / ROD_PX));
  const fill = channelFill(ready, limit, rods);
  const colour = channelTone(ready, limit, tone);
  const step = (width - 16) / rods;
  const end = limit ?? OPEN_END;
  const at = (v: number) => 8 + channelShare(v, limit) * (width - 16);
  const peakAt = peak !== null && peak > 1 ? at(peak) : null;
  const labels = placeLabels(scaleMarks(end), at, limit, width, peakAt, `peak ${countShort(peak)}`);
  return (
    <svg className="depth" width={width} height="52" role="img" aria-label={words(ready, limit)}>
      <path d={`M1 6v22M${width - 1} 6v22`} stroke="var(--line-3)" strokeWidth="2" strokeLinecap="round" />
      {Array.from({ length: rods }, (_, i) => (
        <rect
          key={i}
          x={8 + i * step}
          y="8"
          width={Math.max(1, step - 2.4)}
          height="18"
          rx="1"
          fill={i < fill ? colour : "var(--line-1)"}
        />
      ))}
      {peakAt === null ? null : <path d={`M${peakAt} 3v28`} stroke="var(--text-2)" strokeDasharray="2 2" />}
      {labels.map((l) => (
        <text key={l.text} x={l.x} y="46" fontSize="11" fill={l.peak ? "var(--text-2)" : "var(--text-3)"}>
          {l.text}
        </text>
      ))}
    </svg>
  );
}

interface Label {
  text: string;
  x: number;
  w: number;
  peak: boolean;
}

/** The ends stand always, the peak if it has room, the rest where nothing stands yet. */
function placeLabels(
  marks: number[],
  at: (v: number) => number,
  limit: number | null,
  width: number,
  peakAt: number | null,
  peakText: string,
): Label[] {
  const out: Label[] = [];
  const add = (text: string, centre: number, peak: boolean) => {
    const w = text.length * LABEL_CHAR_PX;
    const x = Math.max(8, Math.min(width - 8 - w, centre - w / 2));
    if (out.every((l) => x > l.x + l.w + 10 || x + w + 10 < l.x)) out.push({ text, x, w, peak });
  };
  const last = marks.at(-1) as number;
  add(short(marks[0] as number), 8, false);
  add(`${short(last)}${last === limit ? " limit" : ""}`, width, false);
  if (peakAt !== null) add(peakText, peakAt, true);
  for (const v of marks.slice(1, -1)) add(short(v), at(v), false);
  return out;
}

const short = (v: number): string =>
  countShort(v)
    .replace(/\.0+(?= )/, "")
    .replace(/^(\d),000$/, "$1 k");

function scaleMarks(end: number): number[] {
  const out: number[] = [];
  for (let v = 1; v < end * 0.6; v *= 10) out.push(v);
  out.push(end);
  return out;
}
