// Details beside the content: pushes at 1100 px and more, covers the right 60 % below, a full page with Back below 720.

import { type ReactNode, useEffect, useRef, useState } from "react";
import { useKeys } from "../keys/useKeys";
import { Icon } from "./Icon";
import { MiddleCut } from "./MiddleCut";

const MIN = 300;
const KEY = "reactor.side";

interface SidePanelProps {
  label: string;
  title: ReactNode;
  tools?: ReactNode;
  /** Width until the reader drags it. */
  width?: number;
  close: () => void;
  children: ReactNode;
}

const largest = () => Math.round(window.innerWidth * 0.6);
function storedWidth(fallback: number): number {
  const kept = Number(localStorage.getItem(KEY));
  return Math.min(largest(), Math.max(MIN, Number.isFinite(kept) && kept > 0 ? kept : fallback));
}

export function SidePanel({ label, title, tools, width = 380, close, children }: SidePanelProps) {
  const [w, setW] = useState(() => storedWidth(width));
  const panel = useRef<HTMLElement>(null);
  useKeys([
    { keys: "Escape", does: "Close the panel", run: close },
    { keys: "]", does: "Close the side panel", run: close },
  ]);
  // On a narrow screen the panel is the page: focus goes with the reader.
  useEffect(() => {
    if (window.innerWidth < 720) panel.current?.focus();
  }, []);
  const resize = (next: number) => {
    const clipped = Math.min(largest(), Math.max(MIN, Math.round(next)));
    setW(clipped);
    localStorage.setItem(KEY, String(clipped));
  };
  return (
    <aside ref={panel} className="side" aria-label={label} style={{ width: w }} tabIndex={-1}>
      <Grip width={w} resize={resize} />
      <header className="side-head">
        <button type="button" className="btn icon narrow-only" aria-label="Back" onClick={close}>
          <Icon name="back" size={16} />
        </button>
        <h2>{title}</h2>
        <span className="grow" />
        {tools}
        <button type="button" className="btn icon wide-only" aria-label="Close" title="Close (Esc)" onClick={close}>
          <Icon name="close" size={14} />
        </button>
      </header>
      <div className="side-body">{children}</div>
    </aside>
  );
}

function Grip({ width, resize }: { width: number; resize: (next: number) => void }) {
  const [on, setOn] = useState(false);
  return (
    <div
      className={`side-grip wide-only${on ? " on" : ""}`}
      role="separator"
      aria-orientation="vertical"
      aria-label="Panel width"
      aria-valuenow={width}
      aria-valuemin={MIN}
      aria-valuemax={largest()}
      tabIndex={0}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        setOn(true);
      }}
      onPointerMove={(event) => {
        if (on) resize(window.innerWidth - event.clientX);
      }}
      onPointerUp={() => setOn(false)}
      onPointerCancel={() => setOn(false)}
      onKeyDown={(event) => {
        const step = { ArrowLeft: 16, ArrowRight: -16 }[event.key];
        if (!step) return;
        event.preventDefault();
        resize(width + step);
      }}
    />
  );
}

/** Names and values in a panel. */
export function Facts({
  rows,
  plain = false,
}: {
  rows: (readonly [string, ReactNode] | null | false)[];
  plain?: boolean;
}) {
  return (
    <dl className={`facts${plain ? " plain" : ""}`}>
      {rows.map((row) =>
        row ? (
          <Fact key={row[0]} name={row[0]} plain={plain}>
            {row[1]}
          </Fact>
        ) : null,
      )}
    </dl>
  );
}
function Fact({ name, plain, children }: { name: string; plain: boolean; children: ReactNode }) {
  const text = typeof children === "string" ? children : undefined;
  return (
    <>
      <dt title={name}>{name}</dt>
      <dd title={text}>{text && !plain && !text.includes(" ") ? <MiddleCut text={text} /> : children}</dd>
    </>
  );
}

export function SectionHead({ title, note, first = false }: { title: string; note?: ReactNode; first?: boolean }) {
  return (
    <h3 className={`section-head${first ? "" : " line-top"}`}>
      {title} {note !== undefined ? <span>{note}</span> : null}
    </h3>
  );
}
