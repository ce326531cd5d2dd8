// A region of a page: a head of 36 px, a body, hairlines between neighbours. And what stands in a body when it has no rows.

import { type ReactNode, useEffect, useState } from "react";
import type { Problem } from "../api/types";
import { useKeys } from "../keys/useKeys";
import { shortId } from "./format";
import { Glyph } from "./marks";

interface RegionProps {
  title: string;
  count?: ReactNode;
  tools?: ReactNode;
  className?: string;
  /** Old data stands at 60 % under a progress line while new data is on its way for longer than 150 ms. */
  loading?: boolean;
  scroll?: boolean;
  children: ReactNode;
}

export function Region({
  title,
  count,
  tools,
  className = "",
  loading = false,
  scroll = false,
  children,
}: RegionProps) {
  const slow = useSlow(loading);
  return (
    <section className={`region ${className}`} aria-label={title} aria-busy={slow || undefined}>
      <header className="region-head">
        <h2>{title}</h2>
        {count !== undefined && count !== null ? <span className="count">{count}</span> : null}
        {tools ? <div className="region-tools">{tools}</div> : null}
      </header>
      {slow ? <div className="progress" /> : null}
      <div className={`${scroll ? "region-body" : "grow"}${slow ? " loading-old" : ""}`}>{children}</div>
    </section>
  );
}

/** True once `on` has lasted 150 ms: before that nothing changes on the screen. */
export function useSlow(on: boolean): boolean {
  const [slow, setSlow] = useState(false);
  useEffect(() => {
    if (!on) {
      setSlow(false);
      return;
    }
    const timer = setTimeout(() => setSlow(true), 150);
    return () => clearTimeout(timer);
  }, [on]);
  return slow;
}

/** First load: where the rows will be, without movement. */
export function Outlines({ rows = 6 }: { rows?: number }) {
  const slow = useSlow(true);
  if (!slow) return null;
  return (
    <div role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, i) => (
        <div key={i} className="outline-row">
          <i style={{ width: `${46 - ((i * 17) % 29)}%` }} />
        </div>
      ))}
    </div>
  );
}

/** Rows exist, none of them match. */
export function NoMatch({ where, outside, children }: { where: string; outside: string | null; children?: ReactNode }) {
  return (
    <div className="note">
      No rows match {where}. {outside ? <span className="dim">{outside}</span> : null}
      {children ? <div>{children}</div> : null}
    </div>
  );
}

/** Nothing is here yet: say what would be and how it comes. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="note">
      <b className="strong">{title}</b>
      {children ? <div className="dim">{children}</div> : null}
    </div>
  );
}

/** A refusal or fault in place of a region's body: what, why, what next, again. */
export function Fault({ problem, retry }: { problem: Problem; retry?: () => void }) {
  useKeys(retry ? [{ keys: "r", does: "Try again", run: retry }] : []);
  return (
    <div className="note fault" role="alert">
      <Glyph kind="failing" />
      <div>
        {problem.detail || problem.title}
        {problem.next ? <div className="dim">{problem.next}</div> : null}
        <div>
          {retry ? (
            <button type="button" className="btn sm" onClick={retry}>
              Try again <kbd>R</kbd>
            </button>
          ) : null}
          {problem.trace_id ? <span className="mono-11 meta">trace {shortId(problem.trace_id)}</span> : null}
        </div>
      </div>
    </div>
  );
}

/** Missing rows stand in the list as one hatched row. */
export function GapRow({ children }: { children: ReactNode }) {
  return (
    <div className="gap-row">
      <span>{children}</span>
    </div>
  );
}
