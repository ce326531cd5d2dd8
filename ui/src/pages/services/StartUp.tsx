// The start of supervised instances: waiting for what comes before hatched, starting outlined, ready a filled rod.

import { useMemo } from "react";
import { useHappenings } from "../../live/happenings";
import { useSlot } from "../../live/slots";
import { axisDuration } from "../../parts/axis";
import { clock, duration } from "../../parts/format";
import { slotColour } from "../../parts/marks";
import { axisSteps, type StartBar, type Startup, startupOf } from "./startRun";

const LEFT = 132;
const RIGHT = 74;
const ROW = 28;
const TOP = 26;

export function useStartup(): Startup | null {
  const { rows } = useHappenings(500);
  const newest = rows[0]?.seq ?? 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the newest sequence number stands for the rows
  return useMemo(() => startupOf(rows), [newest]);
}

export function StartUp({ startup, width }: { startup: Startup; width: number }) {
  const { bars, from_us, to_us, allReady } = startup;
  const seconds = (to_us - from_us) / 1e6;
  const x = (us: number) => LEFT + ((us - from_us) / (to_us - from_us)) * (width - LEFT - RIGHT);
  const height = TOP + bars.length * ROW + 8;
  return (
    <section className="region line-right startup" aria-label="Start-up">
      <header className="region-head">
        <h2>Start-up</h2>
        <span className="count">
          {clock(from_us)}
          {allReady ? `, all ready after ${duration((to_us - from_us) * 1000)}` : ""}
        </span>
      </header>
      <div className="region-body">
        <svg width={width} height={height} role="img" aria-label={bars.map(words).join("; ")}>
          <defs>
            <pattern id="startup-wait" width="6" height="4" patternUnits="userSpaceOnUse">
              <rect width="3" height="4" fill="var(--line-2)" />
            </pattern>
          </defs>
          {axisSteps(seconds).map((s) => (
            <g key={s}>
              <path
                d={`M${x(from_us + s * 1e6)} 20V${height - 6}`}
                stroke={s === 0 ? "var(--line-2)" : "var(--chart-grid)"}
              />
              <text x={x(from_us + s * 1e6)} y="13" textAnchor="middle" fontSize="11" fill="var(--text-3)">
                {s === 0 ? "0" : axisDuration(s * 1e9)}
              </text>
            </g>
          ))}
          {bars.map((bar, i) => (
            <Bar key={bar.instance} bar={bar} y={TOP + i * ROW} x={x} from_us={from_us} to_us={to_us} />
          ))}
        </svg>
        <div className="startup-legend">
          <span>
            <i className="wait" />
            waiting for its turn
          </span>
          <span>
            <i className="starting" />
            starting
          </span>
          <span>
            <i className="ready" />
            ready
          </span>
        </div>
      </div>
    </section>
  );
}

const words = (b: StartBar): string =>
  b.ready_us === null
    ? `${b.instance} ${b.failed ? "failed" : "not ready"}`
    : `${b.instance} ready after ${duration((b.ready_us - b.starting_us) * 1000)}`;

interface BarProps {
  bar: StartBar;
  y: number;
  x: (us: number) => number;
  from_us: number;
  to_us: number;
}

function Bar({ bar, y, x, from_us, to_us }: BarProps) {
  const colour = slotColour(useSlot(bar.service));
  const a = x(bar.starting_us);
  const b = Math.max(a + 3, x(bar.ready_us ?? to_us));
  const failed = bar.ready_us === null && bar.failed;
  return (
    <g>
      <rect x="16" y={y + 6} width="3" height="12" rx="1" fill={colour} />
      <text x="26" y={y + 16.5} fontSize="12" fill="var(--text-1)">
        {bar.instance.length > 15 ? `${bar.instance.slice(0, 14)}…` : bar.instance}
      </text>
      {a - x(from_us) > 4 ? (
        <rect x={x(from_us)} y={y + 10} width={a - x(from_us) - 2} height="4" fill="url(#startup-wait)" />
      ) : null}
      <rect
        x={a}
        y={y + 6}
        width={b - a}
        height="12"
        rx="2"
        fill="var(--bg-2)"
        stroke={colour}
        strokeWidth="1.2"
        strokeDasharray={bar.ready_us === null ? "3 3" : undefined}
      />
      {bar.ready_us === null ? null : <rect x={b - 1} y={y + 3} width="3" height="18" rx="1" fill="var(--ok)" />}
      <text x={b + 8} y={y + 16} fontSize="11" fill={failed ? "var(--err)" : "var(--text-2)"}>
        {bar.ready_us === null ? (failed ? "failed" : "open") : duration((bar.ready_us - bar.starting_us) * 1000)}
      </text>
    </g>
  );
}
