// A path, key or name in one line. Where it does not fit it loses its middle: its end tells things apart that begin alike. The text
// stays whole for whoever rests the pointer on it or copies it, and once more for whoever has it read out: a box in the middle of a
// word is read as a gap.

import { splitMiddle } from "./format";

/** Whole characters, so that no gap stands before the tail; a hair more, as widths are rounded. Counting works in the mono face only. */
const roomFor = (tail: string): string => `calc(round(down, 100% - ${tail.length}ch + 1px, 1ch) + 0.5px)`;

interface MiddleCutProps {
  text: string;
  /** What resting the pointer on it shows, where that is more. */
  whole?: string;
  className?: string;
}

export function MiddleCut({ text, whole = text, className = "" }: MiddleCutProps) {
  const [head, tail] = splitMiddle(text);
  return (
    <span className={`middle-cut mono${className && ` ${className}`}`} title={whole}>
      {tail ? (
        <>
          <span className="hidden">{text}</span>
          <span aria-hidden="true">
            <i style={{ maxWidth: roomFor(tail) }}>{head}</i>
            {tail}
          </span>
        </>
      ) : (
        text
      )}
    </span>
  );
}
