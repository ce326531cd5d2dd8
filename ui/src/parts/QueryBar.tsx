// The filter of a page: conditions as chips, free text beside them, what the server said of the last one. `/` focuses it.

import { type ReactNode, useEffect, useRef, useState } from "react";
import type { Problem } from "../api/types";
import { useKeys } from "../keys/useKeys";
import { isChip, type Token, tokens, withoutToken } from "../query/tokens";
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

export function QueryBar(props: QueryBarProps) {
  return (
    <div className="query">
      <QueryField {...props} />
      {props.children}
    </div>
  );
}

function split(value: string, plain: boolean): { chips: { token: Token; index: number }[]; rest: string } {
  const all = tokens(value);
  const chips = plain ? [] : all.map((token, index) => ({ token, index })).filter((x) => isChip(x.token));
  const rest = plain
    ? value
    : all
        .filter((t) => !isChip(t))
        .map((t) => t.text)
        .join(" ");
  return { chips, rest };
}

/** The text being typed, beside the conditions that stand as chips already. */
function useDraft(value: string, plain: boolean, onChange: QueryBarProps["onChange"]) {
  const { chips, rest } = split(value, plain);
  const [draft, setDraft] = useState(rest);
  const [seen, setSeen] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  if (seen !== value) {
    setSeen(value);
    if (draft.trim() !== rest) setDraft(rest);
  }
  useEffect(() => () => clearTimeout(timer.current), []);
  const chipText = chips.map((x) => x.token.text).join(" ");
  const join = (text: string) => [chipText, text.trim()].filter(Boolean).join(" ");
  const commit = (text: string, replace: boolean) => {
    clearTimeout(timer.current);
    if (join(text) !== value) onChange(join(text), replace);
    // Complete conditions have become chips: the draft keeps what has not.
    setDraft(plain ? text : split(text, plain).rest);
  };
  const type = (text: string) => {
    setDraft(text);
    clearTimeout(timer.current);
    if (text.endsWith(" ") && !plain && tokens(text).some(isChip)) return commit(text, false);
    // A condition is finished by a space or Enter: half a value would only find nothing.
    if (plain || !tokens(text).some((t) => t.field !== null))
      timer.current = setTimeout(() => onChange(join(text), true), TYPING_MS);
  };
  /** The last chip becomes text again. */
  const unchip = () => {
    const last = chips.at(-1);
    if (!last) return false;
    onChange(withoutToken(value, last.index), true);
    setDraft([last.token.text, draft].filter(Boolean).join(" "));
    return true;
  };
  return { chips, draft, commit, type, unchip };
}

export function QueryField({ value, onChange, placeholder, note, problem, plain = false, maxWidth }: QueryBarProps) {
  const input = useRef<HTMLInputElement>(null);
  const { chips, draft, commit, type, unchip } = useDraft(value, plain, onChange);
  useKeys([{ keys: "/", does: "Focus the filter", run: () => input.current?.focus() }]);
  const onKeyDown = (event: React.KeyboardEvent<HTMLInputElement>) => {
    const { selectionStart, selectionEnd } = event.currentTarget;
    if (event.key === "Enter") commit(draft, false);
    else if (event.key === "Escape") {
      commit(draft, true);
      input.current?.blur();
    } else if (event.key !== "Backspace" || selectionStart !== 0 || selectionEnd !== 0 || !unchip()) return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      className={`query-field${problem ? " refused" : ""}`}
      style={maxWidth ? { maxWidth } : undefined}
      title={problem?.detail}
    >
      {chips.map(({ token, index }) => (
        <Chip key={`${index} ${token.text}`} token={token} remove={() => onChange(withoutToken(value, index), false)} />
      ))}
      <input
        ref={input}
        type="text"
        spellCheck={false}
        autoComplete="off"
        aria-label="Filter"
        aria-invalid={problem ? true : undefined}
        placeholder={chips.length === 0 ? placeholder : ""}
        value={draft}
        onChange={(event) => type(event.target.value)}
        onBlur={() => commit(draft, true)}
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
