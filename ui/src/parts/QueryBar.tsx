// The filter of a page: conditions as chips, free text beside them, what the server said of the last one. `/` focuses it.

import { type ReactNode, useEffect, useRef, useState } from "react";
import type { Problem } from "../api/types";
import { useKeys } from "../keys/useKeys";
import { type Draft, filterOf, settle, settled, typed, unchipped, withoutChip } from "../query/draft";
import type { Token } from "../query/tokens";
import { Icon } from "./Icon";

interface QueryBarProps {
  value: string;
  onChange: (value: string, replace: boolean) => void;
  placeholder: string;
  /** What matched, and how long it took. */
  note?: ReactNode;
  /** The server's refusal of this filter, with the place in it. */
  problem?: Problem | null | undefined;
  /** Tools at the right. */
  children?: ReactNode;
  /** Text only: no conditions become chips. */
  plain?: boolean;
  maxWidth?: number;
}

const TYPING_MS = 300;
const isPressed = (): boolean => document.querySelector(":active") !== null;

export function QueryBar(props: QueryBarProps) {
  return (
    <div className="query">
      <QueryField {...props} />
      {props.children}
    </div>
  );
}

/** What is being typed, and when the page learns of it: a moment later, replacing the address, so that the list follows. */
function useDraft({ value, onChange, plain = false }: QueryBarProps) {
  const [draft, setDraft] = useState(() => settled(value, plain));
  const [seen, setSeen] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  /** What the page was told and has not said back yet, newest last: while it does, more may have been typed. */
  const told = useRef([value]);
  const tell = useRef(onChange);
  tell.current = onChange;
  if (seen !== value) {
    setSeen(value);
    const at = told.current.lastIndexOf(value);
    if (at < 0) setDraft(settled(value, plain));
    told.current = at < 0 ? [value] : told.current.slice(at);
  }
  useEffect(() => () => clearTimeout(timer.current), []);
  const apply = (next: Draft, replace: boolean) => {
    clearTimeout(timer.current);
    const text = filterOf(next, plain);
    if (text === told.current.at(-1)) return;
    told.current.push(text);
    tell.current(text, replace);
  };
  const later = (next: Draft) => {
    clearTimeout(timer.current);
    // Rows must not move between press and release.
    timer.current = setTimeout(() => (isPressed() ? later(next) : apply(next, true)), TYPING_MS);
  };
  return {
    draft,
    type: (text: string) => {
      const next = typed(draft, text, plain);
      setDraft(next);
      later(next);
    },
    /** Complete conditions become chips; the address gets a new entry unless it only follows. */
    set: (next: Draft, replace: boolean) => {
      setDraft(next);
      apply(next, replace);
    },
    /** A click took the focus away: what was typed last waits until it is done. */
    leave: () => {
      if (filterOf(draft, plain) !== told.current.at(-1)) later(draft);
    },
  };
}

export function QueryField(props: QueryBarProps) {
  const { placeholder, note, problem, plain = false, maxWidth } = props;
  const input = useRef<HTMLInputElement>(null);
  const { draft, type, set, leave } = useDraft(props);
  useKeys([{ keys: "/", does: "Focus the filter", run: () => input.current?.focus() }]);
  const onKeyDown = (event: React.KeyboardEvent<HTMLInputElement>) => {
    const { selectionStart, selectionEnd } = event.currentTarget;
    const atStart = selectionStart === 0 && selectionEnd === 0;
    if (event.key === "Enter") set(settle(draft, plain), false);
    else if (event.key === "Escape") {
      set(settle(draft, plain), true);
      input.current?.blur();
    } else if (event.key === "Backspace" && atStart && draft.chips.length > 0) set(unchipped(draft), true);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      className={`query-field${problem ? " refused" : ""}`}
      style={maxWidth ? { maxWidth } : undefined}
      title={problem?.detail}
    >
      {draft.chips.map((token, index) => (
        <Chip key={`${index} ${token.text}`} token={token} remove={() => set(withoutChip(draft, index), false)} />
      ))}
      <input
        ref={input}
        type="text"
        spellCheck={false}
        autoComplete="off"
        aria-label="Filter"
        aria-invalid={problem ? true : undefined}
        placeholder={draft.chips.length === 0 ? placeholder : ""}
        value={draft.text}
        onChange={(event) => type(event.target.value)}
        onBlur={leave}
        onKeyDown={onKeyDown}
      />
      <FieldNote note={note} problem={problem} />
    </div>
  );
}

function FieldNote({ note, problem }: Pick<QueryBarProps, "note" | "problem">) {
  if (problem) {
    return (
      <span className="query-note err" role="alert">
        {problem.detail}
        {problem.position !== undefined ? ` (at ${problem.position + 1})` : ""}
      </span>
    );
  }
  return note ? <span className="query-note">{note}</span> : null;
}

const OPS: Record<string, string> = { ":": "", ">=": "≥ ", "<=": "≤ ", ">": "> ", "<": "< " };

export function Chip({ token, remove }: { token: Token; remove?: () => void }) {
  return (
    <span className="chip">
      {token.field ? <span>{`${token.negated ? "-" : ""}${token.field}`}</span> : null}
      <b>{`${OPS[token.op ?? ":"] ?? ""}${token.value}`}</b>
      {remove ? (
        <button type="button" aria-label={`Remove ${token.text}`} onClick={remove}>
          <Icon name="close" size={10} />
        </button>
      ) : null}
    </span>
  );
}
