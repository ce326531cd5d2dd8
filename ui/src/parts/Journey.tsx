// A message's way as steps: done is a disc, now a half disc, to come a ring on a dotted line.

import type { ReactNode } from "react";

export interface JourneyStep {
  at: "done" | "now" | "next";
  what: ReactNode;
  note: ReactNode;
  time: string;
  tone?: "warn" | "err" | undefined;
}

const SHAPES = {
  done: <circle cx="5" cy="5" r="3.5" fill="currentColor" />,
  now: (
    <>
      <circle cx="5" cy="5" r="3" fill="none" stroke="currentColor" strokeWidth="1.6" />
      <path d="M5 2a3 3 0 000 6z" fill="currentColor" />
    </>
  ),
  next: <circle cx="5" cy="5" r="3" fill="none" stroke="currentColor" strokeWidth="1.3" />,
};

export function Journey({ steps }: { steps: readonly JourneyStep[] }) {
  return (
    <ol className="journey">
      {steps.map((s, i) => (
        <li
          key={i}
          className={`${s.at}${s.tone ? ` ${s.tone}-line` : ""}`}
          aria-current={s.at === "now" ? "step" : undefined}
        >
          <svg
            className={s.at === "done" ? "dim" : s.at === "next" ? "meta" : (s.tone ?? "accent-none")}
            width="10"
            height="10"
            aria-hidden="true"
          >
            {SHAPES[s.at]}
          </svg>
          <div>
            <span className={s.tone}>{s.what}</span>
            {s.note ? <small>{s.note}</small> : null}
          </div>
          <span className={`mono-11 ${s.tone ?? "meta"}`}>{s.time}</span>
        </li>
      ))}
    </ol>
  );
}
