// What is typed into a filter before it is settled: conditions that stand as chips, and the text beside them. Pure.
//
//   value ──► chips │ draft          what the page is filtered by is always chips and draft together, so that it is live while typing;
//             typed ──────► draft    a condition becomes a chip by a space or Enter, never under the pointer of somebody who clicks away

import { isChip, type Token, tokens } from "./tokens";

export interface Draft {
  /** Conditions that stand by themselves. */
  chips: readonly Token[];
  text: string;
}

const joined = (parts: readonly string[]): string => parts.filter(Boolean).join(" ");

/** The chips of a filter, and the rest of it. In a plain one all is text. */
export function settled(value: string, plain: boolean): Draft {
  if (plain) return { chips: [], text: value };
  const all = tokens(value);
  return {
    chips: all.filter(isChip),
    text: joined(all.filter((t) => !isChip(t)).map((t) => t.text)),
  };
}

/** The filter that a draft stands for. A condition without its value yet says nothing. */
export function filterOf({ chips, text }: Draft, plain: boolean): string {
  const said = plain
    ? text.trim()
    : joined(
        tokens(text)
          .filter((t) => t.field === null || isChip(t))
          .map((t) => t.text),
      );
  return joined([...chips.map((chip) => chip.text), said]);
}

/** Enter, and a space after a condition: what is complete becomes chips, the rest stays to be written on. */
export function settle({ chips, text }: Draft, plain: boolean): Draft {
  const { chips: more, text: rest } = settled(text, plain);
  return { chips: [...chips, ...more], text: rest };
}

/** A keystroke. */
export function typed(draft: Draft, text: string, plain: boolean): Draft {
  const next = { ...draft, text };
  return !plain && text.endsWith(" ") && tokens(text).some(isChip) ? settle(next, plain) : next;
}

export const withoutChip = ({ chips, text }: Draft, index: number): Draft => ({
  chips: chips.filter((_, i) => i !== index),
  text,
});

/** Backspace at the beginning of the text: the last chip becomes text again. */
export const unchipped = ({ chips, text }: Draft): Draft => ({
  chips: chips.slice(0, -1),
  text: joined([chips.at(-1)?.text ?? "", text]),
});
