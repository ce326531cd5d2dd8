// Fields of a dialog: a label, a field, and what is wrong with it or worth knowing beneath.

import { type ReactNode, useId } from "react";

interface FieldProps {
  label: string;
  /** What is wrong; stands in place of the hint. */
  wrong?: string | null | undefined;
  hint?: ReactNode;
}
interface TextProps extends FieldProps {
  value: string;
  onChange: (value: string) => void;
  mono?: boolean;
  rows?: number;
  list?: readonly string[];
  placeholder?: string;
  inputMode?: "numeric";
  autoFocus?: boolean;
  /** Written unseen. */
  secret?: boolean;
}

export function TextField(props: TextProps) {
  const {
    label,
    wrong,
    hint,
    value,
    onChange,
    mono = false,
    rows,
    list,
    placeholder,
    inputMode,
    autoFocus,
    secret,
  } = props;
  const id = useId();
  const below = `${id}-below`;
  const own = {
    id,
    className: `field${mono ? " mono" : ""}`,
    spellCheck: false,
    value,
    placeholder,
    "data-first": autoFocus || undefined,
    "aria-describedby": below,
    "aria-invalid": wrong ? true : undefined,
  };
  return (
    <div className="form-field">
      <label htmlFor={id}>{label}</label>
      <div>
        {rows ? (
          <textarea {...own} rows={rows} onChange={(event) => onChange(event.target.value)} />
        ) : (
          <input
            {...own}
            type={secret ? "password" : "text"}
            autoComplete={secret ? "new-password" : "off"}
            inputMode={inputMode}
            list={list ? `${id}-list` : undefined}
            onChange={(event) => onChange(event.target.value)}
          />
        )}
        {list ? (
          <datalist id={`${id}-list`}>
            {list.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        ) : null}
        <p id={below} className={wrong ? "err" : "meta"} aria-live="polite">
          {wrong ?? hint}
        </p>
      </div>
    </div>
  );
}

interface CheckProps {
  label: ReactNode;
  hint?: ReactNode;
  on: boolean;
  onChange: (on: boolean) => void;
}
export function Check({ label, hint, on, onChange }: CheckProps) {
  return (
    <label className="form-check">
      <input type="checkbox" checked={on} onChange={(event) => onChange(event.target.checked)} />
      <span>
        {label}
        {hint ? <small className="meta">{hint}</small> : null}
      </span>
    </label>
  );
}

interface ChoiceProps<T extends string> {
  label: string;
  value: T;
  options: readonly (readonly [T, ReactNode])[];
  onChange: (value: T) => void;
}
/** One of a few, each with its own words. */
export function Choice<T extends string>({ label, value, options, onChange }: ChoiceProps<T>) {
  const name = useId();
  return (
    <fieldset className="form-choice">
      <legend className="hidden">{label}</legend>
      {options.map(([v, words]) => (
        <label key={v} className="form-check">
          <input type="radio" name={name} checked={v === value} onChange={() => onChange(v)} />
          <span>{words}</span>
        </label>
      ))}
    </fieldset>
  );
}
