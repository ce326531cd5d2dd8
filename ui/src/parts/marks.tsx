// Identity and state: the rod before a service's name, the row of rods of its instances, the shapes of states, pills.

import { Link } from "@tanstack/react-router";
import { type CSSProperties, memo, type ReactNode } from "react";
import type { State } from "../api/types";
import { useSlot } from "../live/slots";

export const slotColour = (slot: number | null | undefined): string =>
  slot ? `var(--svc-${((slot - 1) % 12) + 1})` : "var(--chart-2)";
const coloured = (slot: number | null | undefined): CSSProperties => ({ "--c": slotColour(slot) }) as CSSProperties;

/** A service: its rod and its name, always a link. */
export const ServiceName = memo(function ServiceName({
  name,
  slot,
  link = true,
}: {
  name: string;
  slot?: number | null;
  link?: boolean;
}) {
  const known = useSlot(name);
  const style = coloured(slot === undefined ? known : slot);
  const inner = (
    <>
      <i />
      {name}
    </>
  );
  return link ? (
    <Link className="service" style={style} to="/services" search={{ service: name }}>
      {inner}
    </Link>
  ) : (
    <span className="service" style={style}>
      {inner}
    </span>
  );
});

/** Two letters where there is no room for a name; the 13th colour and on have a dotted line. */
export const ServiceMark = memo(function ServiceMark({ name }: { name: string }) {
  const slot = useSlot(name);
  return (
    <span className={`service-mark${slot && slot > 12 ? " again" : ""}`} style={coloured(slot)} title={name}>
      <span aria-hidden="true">{name.slice(0, 2)}</span>
      <span className="hidden">{name}</span>
    </span>
  );
});

const ROD: Record<State, string> = {
  ready: "",
  degraded: "rod-degraded",
  starting: "rod-starting",
  stopping: "rod-starting",
  failing: "rod-failing",
  stopped: "rod-stopped",
  detached: "rod-stopped",
};

export function instanceWords(states: readonly State[]): string {
  const counts = new Map<State, number>();
  for (const state of states) counts.set(state, (counts.get(state) ?? 0) + 1);
  return [...counts].map(([state, n]) => `${n} ${state}`).join(", ") || "no instances";
}

/** A row of instances; more than twelve are counted. */
export const Rods = memo(function Rods({ states }: { states: readonly State[] }) {
  const shown = states.length > 12 ? states.slice(0, 12) : states;
  return (
    <span className="rods" role="img" aria-label={instanceWords(states)} title={instanceWords(states)}>
      {shown.map((state, i) => (
        <i key={i} className={ROD[state]} />
      ))}
      {states.length > 12 ? <b>+{states.length - 12}</b> : null}
    </span>
  );
});

const SHAPES: Record<State, { tone: string; shape: ReactNode }> = {
  ready: { tone: "ok", shape: <circle cx="5" cy="5" r="3.5" fill="currentColor" /> },
  starting: {
    tone: "warn",
    shape: <circle cx="5" cy="5" r="3" fill="none" stroke="currentColor" strokeWidth="1.5" strokeDasharray="4.7 1.6" />,
  },
  stopping: {
    tone: "meta",
    shape: <circle cx="5" cy="5" r="3" fill="none" stroke="currentColor" strokeWidth="1.5" strokeDasharray="4.7 1.6" />,
  },
  degraded: {
    tone: "warn",
    shape: (
      <>
        <circle cx="5" cy="5" r="3" fill="none" stroke="currentColor" strokeWidth="1.5" />
        <path d="M5 2a3 3 0 000 6z" fill="currentColor" />
      </>
    ),
  },
  failing: { tone: "err", shape: <path d="M5 1l4.4 7.6H.6z" fill="currentColor" /> },
  stopped: {
    tone: "meta",
    shape: <rect x="2" y="2" width="6" height="6" rx="1" fill="none" stroke="currentColor" strokeWidth="1.4" />,
  },
  detached: {
    tone: "meta",
    shape: <path d="M1.5 5h2.4M6.1 5h2.4" stroke="currentColor" strokeWidth="1.8" strokeLinecap="round" />,
  },
};

/** The colour class of a state's words: ready needs none. */
export const stateTone = (state: State): string => (state === "ready" ? "" : SHAPES[state].tone);

export const StateMark = memo(function StateMark({ state, words }: { state: State; words?: ReactNode }) {
  const { tone, shape } = SHAPES[state];
  return (
    <span className="state">
      <svg
        className={tone}
        width="10"
        height="10"
        viewBox="0 0 10 10"
        role="img"
        aria-label={words === undefined ? state : undefined}
        aria-hidden={words === undefined ? undefined : true}
      >
        {shape}
      </svg>
      {words}
    </span>
  );
});

/** Glyphs of happenings and notices, in the same language of shapes. */
export type GlyphKind = "failing" | "degraded" | "change" | "ready";
export function Glyph({ kind }: { kind: GlyphKind }) {
  const tone = kind === "change" ? "dim" : SHAPES[kind].tone;
  const shape =
    kind === "change" ? (
      <path d="M5 1.2L8.8 5 5 8.8 1.2 5z" fill="none" stroke="currentColor" strokeWidth="1.4" />
    ) : (
      SHAPES[kind].shape
    );
  return (
    <svg className={tone} width="10" height="10" viewBox="0 0 10 10" aria-hidden="true">
      {shape}
    </svg>
  );
}

export function Pill({ tone, children }: { tone?: "ok" | "warn" | "err" | "accent"; children: ReactNode }) {
  return <span className={`pill${tone ? ` ${tone}` : ""}`}>{children}</span>;
}
