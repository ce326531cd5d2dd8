// A choice of a few, side by side. Arrow keys move it.

import type { ReactNode } from "react";

interface SegmentsProps<T extends string> {
  label: string;
  value: T;
  options: readonly (readonly [T, ReactNode])[];
  onChange: (value: T) => void;
}

export function Segments<T extends string>({ label, value, options, onChange }: SegmentsProps<T>) {
  const move = (event: React.KeyboardEvent, step: number) => {
    const at = options.findIndex(([v]) => v === value);
    const next = options[(at + step + options.length) % options.length];
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    onChange(next[0]);
    const buttons = event.currentTarget.querySelectorAll("button");
    buttons[options.indexOf(next)]?.focus();
  };
  return (
    <div
      className="segments"
      role="radiogroup"
      aria-label={label}
      onKeyDown={(event) => {
        if (event.key === "ArrowRight" || event.key === "ArrowDown") move(event, 1);
        if (event.key === "ArrowLeft" || event.key === "ArrowUp") move(event, -1);
      }}
    >
      {options.map(([v, name]) => (
        <button
          key={v}
          type="button"
          role="radio"
          aria-checked={v === value}
          tabIndex={v === value ? 0 : -1}
          onClick={() => onChange(v)}
        >
          {name}
        </button>
      ))}
    </div>
  );
}
