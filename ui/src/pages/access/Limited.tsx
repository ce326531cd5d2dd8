// Limits of users and spaces: shown beside what they hold, and written as a number or nothing.

import { TextField } from "../../parts/Form";
import { Num } from "../../parts/Num";
import { readLimit } from "./readLimit";

/** A count, and how many there may be. */
export function Limited({ value, max }: { value: number; max: number | null }) {
  return (
    <>
      {value === 0 ? <span className="meta">0</span> : <Num value={value} />}
      {max === null ? null : (
        <span className="meta">
          {" "}
          of <Num value={max} />
        </span>
      )}
    </>
  );
}

interface LimitFieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
}

export function LimitField({ label, value, onChange }: LimitFieldProps) {
  return (
    <TextField
      label={label}
      mono
      inputMode="numeric"
      value={value}
      onChange={onChange}
      placeholder="no limit"
      hint="At most at once."
      wrong={readLimit(value) === undefined ? "A whole number, or nothing for no limit." : null}
    />
  );
}
