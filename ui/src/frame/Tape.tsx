// The strip under the top bar: range picker, silhouette with brush and markers, clock, live or paused.

import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { useKeys } from "../keys/useKeys";
import { useFresh, useLink, useNowUs, usePaused } from "../live/hooks";
import { paused } from "../live/pause";
import { clock, clockAxis, count, upFor } from "../parts/format";
import { Icon } from "../parts/Icon";
import { Menu } from "../parts/Menu";
import { Tape as TapeCanvas } from "../parts/tape";
import { useZone } from "../parts/zone";
import { brushed, lengthWords, type Range, writeLength, zoom } from "../time/range";
import { useRange, useSetRange } from "../time/useRange";
import { useTape } from "../time/useTape";

const LENGTHS = [60, 300, 900, 3600, 6 * 3600, 24 * 3600];
const WHOLE = { last: undefined, end: undefined, from: undefined, to: undefined };

export function Tape() {
  const range = useRange();
  const setRange = useSetRange();
  const now = range.now_us;
  useKeys([
    { keys: "+", does: "Zoom time in", run: () => setRange(zoom(range, range.window.to_us, 0.5, now)) },
    { keys: "-", does: "Zoom time out", run: () => setRange(zoom(range, range.window.to_us, 2, now)) },
    { keys: "0", does: "Reset the range", run: () => setRange(WHOLE) },
  ]);
  useEffect(() => {
    paused.set("range", !range.span.live);
    return () => paused.set("range", false);
  }, [range.span.live]);
  return (
    <section className="tape" aria-label="Time range">
      <RangePicker range={range} />
      <Strip />
      <div className="tape-now">
        <Clock />
        <LivePill />
      </div>
    </section>
  );
}

function rangeWords(range: Range, zone: "local" | "utc"): string {
  const { span, window, brush } = range;
  const short = span.to_us - span.from_us < 300e6;
  const at = (us: number) => clockAxis(us, short ? 1 : 60, zone);
  if (brush) return `${at(span.from_us)} to ${span.live ? "now" : at(span.to_us)}`;
  if (window.live) return `Last ${lengthWords((window.to_us - window.from_us) / 1e6)}`;
  return `${at(window.from_us)} to ${at(window.to_us)}`;
}

function RangePicker({ range }: { range: Range }) {
  const setRange = useSetRange();
  const zone = useZone();
  const seconds = Math.round((range.window.to_us - range.window.from_us) / 1e6);
  return (
    <Menu
      label="Time range"
      className="tape-range"
      button={
        <>
          {rangeWords(range, zone)}
          <span className="meta">
            <Icon name="down" size={12} />
          </span>
        </>
      }
      items={[
        ...LENGTHS.map((s) => ({
          label: `Last ${lengthWords(s)}`,
          on: range.window.live && !range.brush && s === seconds,
          run: () => setRange({ ...WHOLE, last: writeLength(s) }),
        })),
        ...(range.brush || !range.window.live
          ? [{ label: "Back to the last 15 min", hint: "0", run: () => setRange(WHOLE) }]
          : []),
      ]}
    />
  );
}

function Strip() {
  const host = useRef<HTMLDivElement>(null);
  const canvas = useRef<TapeCanvas | null>(null);
  const range = useRange();
  const data = useTape();
  const setRange = useSetRange();
  const navigate = useNavigate();
  const [hint, setHint] = useState<{ text: string; x: number } | null>(null);
  const latest = useRef({ range, setRange, navigate });
  latest.current = { range, setRange, navigate };

  useEffect(() => {
    const now = () => latest.current;
    const made = new TapeCanvas(host.current as HTMLDivElement, {
      onBrush: (a, b) => now().setRange(brushed(now().range, a, b)),
      onReset: () => now().setRange(WHOLE),
      onZoom: (at, factor) => now().setRange(zoom(now().range, at, factor, now().range.now_us), true),
      onOpen: (href) => void now().navigate({ href } as never),
      onHint: (text, x) => setHint(text ? { text, x } : null),
    });
    canvas.current = made;
    return () => made.destroy();
  }, []);
  useEffect(() => canvas.current?.set({ window: range.window, brush: range.brush, data }), [range, data]);

  const total = data?.requests.reduce<number>((sum, v) => sum + (v ?? 0), 0) ?? 0;
  const failed = data?.failed.reduce<number>((sum, v) => sum + (v ?? 0), 0) ?? 0;
  return (
    <div className="tape-strip">
      <div
        ref={host}
        className="tape-canvas"
        role="img"
        aria-label={`Requests over time: ${count(total)}, ${count(failed)} failed`}
      />
      {hint ? (
        <span className="tooltip tape-hint" style={{ left: hint.x }}>
          {hint.text}
        </span>
      ) : null}
    </div>
  );
}

function Clock() {
  const now = useNowUs();
  const zone = useZone();
  return <span className="mono dim wide-only">{clock(now, now, zone)}</span>;
}

/** Live, paused with what waits, or disconnected and for how long. */
export function LivePill() {
  const link = useLink();
  const reasons = usePaused();
  const fresh = useFresh();
  useNowUs();
  if (link.state === "lost") {
    return (
      <span className="live lost" role="status">{`Disconnected ${upFor((Date.now() - link.since_ms) / 1000)}`}</span>
    );
  }
  if (link.state === "connecting") return <span className="live waiting">Connecting</span>;
  if (reasons.size > 0) {
    return (
      <button type="button" className="live paused" title="Resume (P or End)" onClick={() => paused.resume()}>
        Paused{fresh > 0 ? ` · ${count(fresh)} new` : ""}
      </button>
    );
  }
  return (
    <button type="button" className="live" title="Pause (P)" onClick={() => paused.set("key", true)}>
      Live
    </button>
  );
}
