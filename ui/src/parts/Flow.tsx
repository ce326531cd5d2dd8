// A small graph from left to right: what leads to the thing in the middle, and what it leads to. Lines carry their key. Narrow, it
// is the same as a list.

import { type ReactNode, useRef } from "react";
import { elbow, FLOW_NODE, flowHeight, rowMiddle } from "./flow";
import { MiddleCut } from "./MiddleCut";
import { useWidth } from "./useWidth";

export interface FlowEnd {
  id: string;
  node: ReactNode;
  /** On the line. */
  label?: string;
  /** Implied rather than declared. */
  dashed?: boolean;
  /** Stands out, or steps back because others do; without it neither. */
  on?: boolean | undefined;
}

interface FlowProps {
  label: string;
  middle: ReactNode;
  left: readonly FlowEnd[];
  right: readonly FlowEnd[];
  /** What stands where a side has nothing. */
  noLeft?: string;
  noRight?: string;
}

const SHOWN_MAX = 12;
const NARROW = 620;

export function Flow({ label, middle, left, right, noLeft = "", noRight = "" }: FlowProps) {
  const host = useRef<HTMLDivElement>(null);
  const width = useWidth(host);
  const sides = { middle, left: left.slice(0, SHOWN_MAX), right: right.slice(0, SHOWN_MAX), noLeft, noRight };
  const hidden = left.length + right.length - sides.left.length - sides.right.length;
  const inside = width - 32;
  return (
    <div ref={host} className="flow" role="group" aria-label={label}>
      {width === 0 ? null : inside < NARROW ? <FlowList {...sides} /> : <FlowGraph width={inside} {...sides} />}
      {hidden > 0 ? <p className="meta tiny">{hidden} more are not drawn.</p> : null}
    </div>
  );
}

interface SidesProps {
  middle: ReactNode;
  left: readonly FlowEnd[];
  right: readonly FlowEnd[];
  noLeft: string;
  noRight: string;
}
const TRUNK = 26;
const SIDES = ["left", "right"] as const;

function FlowGraph({ width, middle, left, right, noLeft, noRight }: SidesProps & { width: number }) {
  const height = flowHeight(left.length, right.length);
  const node = Math.min(230, width * 0.24);
  const centre = { left: (width - node) / 2, right: (width + node) / 2, y: height / 2 };
  const anyOn = [...left, ...right].some((end) => end.on);
  const gap = centre.left - node - TRUNK;
  const tone = (end: FlowEnd) => (end.on ? "on" : anyOn && end.on === false ? "off" : "");
  const line = (end: FlowEnd, i: number, side: "left" | "right") => {
    const y = rowMiddle(i, side === "left" ? left.length : right.length, height);
    const d =
      side === "left"
        ? elbow(node, y, centre.left - TRUNK, centre.left, centre.y)
        : elbow(width - node, y, centre.right + TRUNK, centre.right, centre.y);
    return (
      <path key={`${side} ${end.id}`} className={tone(end)} d={d} strokeDasharray={end.dashed ? "3 3" : undefined} />
    );
  };
  return (
    <div className="flow-graph" style={{ height }}>
      <svg width={width} height={height} aria-hidden="true">
        {left.map((end, i) => line(end, i, "left"))}
        {right.map((end, i) => line(end, i, "right"))}
      </svg>
      {SIDES.map((side) => {
        const ends = side === "left" ? left : right;
        if (ends.length === 0)
          return (
            <span key={side} className={`flow-none ${side}`} style={{ top: centre.y - FLOW_NODE / 2 }}>
              {side === "left" ? noLeft : noRight}
            </span>
          );
        return (
          <ul key={side}>
            {ends.map((end, i) => {
              const top = rowMiddle(i, ends.length, height);
              return (
                <li key={end.id} className={tone(end)}>
                  <span
                    className={`flow-node${end.dashed ? " dashed" : ""}`}
                    style={{ [side]: 0, top: top - FLOW_NODE / 2, width: node }}
                  >
                    <span className="cut">{end.node}</span>
                  </span>
                  {end.label === undefined ? null : (
                    <span className="flow-key mono-11" style={{ [side]: node + 10, top: top - 9, maxWidth: gap - 20 }}>
                      <MiddleCut text={end.label} />
                    </span>
                  )}
                </li>
              );
            })}
          </ul>
        );
      })}
      <span
        className="flow-node middle"
        style={{ left: centre.left, top: centre.y - FLOW_NODE / 2 - 2, width: node, height: FLOW_NODE + 4 }}
      >
        <span className="cut">{middle}</span>
      </span>
    </div>
  );
}

function FlowList({ middle, left, right, noLeft, noRight }: SidesProps) {
  const row = (end: FlowEnd, arrow: string) => (
    <li key={end.id} className={end.on ? "on" : undefined}>
      <span className="meta" aria-hidden="true">
        {arrow}
      </span>
      <span className="cut">{end.node}</span>
      {end.label ? <MiddleCut text={end.label} className="mono-11 meta" /> : null}
    </li>
  );
  return (
    <ul className="flow-list">
      {left.length === 0 && noLeft ? <li className="meta">{noLeft}</li> : left.map((end) => row(end, "→"))}
      <li className="middle">{middle}</li>
      {right.length === 0 && noRight ? <li className="meta">{noRight}</li> : right.map((end) => row(end, "↳"))}
    </ul>
  );
}
