// Colours that a program wrote for its terminal, as classes of the page; every other escape sequence is dropped. Pure, and never
// HTML: the text stays text. Colours are the terminal's eight, mapped to inks that can be read on both grounds.

export interface Span {
  text: string;
  /** Class names, empty for plain text. */
  style: string;
}

interface Pen {
  ink: string;
  bold: boolean;
  dim: boolean;
  underline: boolean;
  inverse: boolean;
}

const BASIC = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const plain = (): Pen => ({ ink: "", bold: false, dim: false, underline: false, inverse: false });

// CSI with any final byte, OSC up to BEL or ST, two-byte escapes, and the C1 forms.
const ESCAPE =
  /\u001b\[([0-9;:?]*)[ -/]*([@-~])|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[@-Z\\-_a-z0-9=>]|\u009b([0-9;:?]*)([@-~])/g;
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

export function ansi(line: string): Span[] {
  const shown = afterCarriageReturn(line);
  const out: Span[] = [];
  const pen = plain();
  let at = 0;
  const push = (text: string) => {
    const clean = text.replace(CONTROL, "");
    if (clean === "") return;
    const style = styleOf(pen);
    const last = out.at(-1);
    if (last && last.style === style) last.text += clean;
    else out.push({ text: clean, style });
  };
  for (const match of shown.matchAll(ESCAPE)) {
    push(shown.slice(at, match.index));
    at = match.index + match[0].length;
    if ((match[2] ?? match[4]) === "m") apply(pen, match[1] ?? match[3] ?? "");
  }
  push(shown.slice(at));
  return out;
}

/** A progress bar overwrites its line: what stands after the last return is what a terminal would show. */
function afterCarriageReturn(line: string): string {
  const trimmed = line.replace(/\r+$/, "");
  const at = trimmed.lastIndexOf("\r");
  return at < 0 ? trimmed : trimmed.slice(at + 1);
}

function apply(pen: Pen, parameters: string): void {
  const codes = parameters === "" ? [0] : parameters.split(/[;:]/).map((p) => (p === "" ? 0 : Number(p)));
  for (let i = 0; i < codes.length; i += 1) {
    const code = codes[i] as number;
    if (code === 38 || code === 48) {
      const ink = extended(codes, i);
      if (code === 38) pen.ink = ink.name;
      i += ink.used;
    } else applyOne(pen, code);
  }
}

function applyOne(pen: Pen, code: number): void {
  if (code === 0) Object.assign(pen, plain());
  else if (code === 1) pen.bold = true;
  else if (code === 2) pen.dim = true;
  else if (code === 4) pen.underline = true;
  else if (code === 7) pen.inverse = true;
  else if (code === 22) {
    pen.bold = false;
    pen.dim = false;
  } else if (code === 24) pen.underline = false;
  else if (code === 27) pen.inverse = false;
  else if (code >= 30 && code <= 37) pen.ink = BASIC[code - 30] as string;
  else if (code === 39) pen.ink = "";
  else if (code === 90) pen.ink = "grey";
  else if (code > 90 && code <= 97) pen.ink = BASIC[code - 90] as string;
}

function extended(codes: number[], at: number): { name: string; used: number } {
  if (codes[at + 1] === 5) return { name: fromPalette(codes[at + 2] ?? 0), used: 2 };
  if (codes[at + 1] === 2)
    return { name: nearest(codes[at + 2] ?? 0, codes[at + 3] ?? 0, codes[at + 4] ?? 0), used: 4 };
  return { name: "", used: 0 };
}

function fromPalette(n: number): string {
  if (n < 8) return BASIC[n] as string;
  if (n === 8) return "grey";
  if (n < 16) return BASIC[n - 8] as string;
  if (n >= 232) return n < 244 ? "grey" : "white";
  const level = (v: number) => (v === 0 ? 0 : 55 + v * 40);
  const c = n - 16;
  return nearest(level(Math.floor(c / 36)), level(Math.floor(c / 6) % 6), level(c % 6));
}

/** Of any colour the basic one with its hue. */
function nearest(r: number, g: number, b: number): string {
  const max = Math.max(r, g, b);
  const min = Math.min(r, g, b);
  if (max - min < 40) return max < 150 ? "grey" : "white";
  const bit = (v: number) => (v > (max + min) / 2 ? 1 : 0);
  return BASIC[bit(r) + 2 * bit(g) + 4 * bit(b)] as string;
}

function styleOf(pen: Pen): string {
  const names: string[] = [];
  if (pen.ink) names.push(`ansi-${pen.ink}`);
  if (pen.dim) names.push("ansi-dim");
  if (pen.bold) names.push("ansi-bold");
  if (pen.underline) names.push("ansi-underline");
  if (pen.inverse) names.push("ansi-inverse");
  return names.join(" ");
}

const LEVEL = /\b(TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERR(?:OR)?|FATAL|CRITICAL|PANIC)\b/;
const LEVEL_WITHIN = 80;

/** A line without colours of its own has its level word inked, as a terminal logger would. */
export function consoleSpans(line: string): Span[] {
  const spans = ansi(line);
  const only = spans[0];
  if (spans.length !== 1 || !only || only.style !== "") return spans;
  const match = LEVEL.exec(only.text.slice(0, LEVEL_WITHIN));
  if (!match) return spans;
  const word = match[0];
  const style = /^(ERR|FATAL|CRIT|PANIC)/.test(word)
    ? "ansi-red"
    : word.startsWith("WARN")
      ? "ansi-yellow"
      : "ansi-grey";
  return [
    { text: only.text.slice(0, match.index), style: "" },
    { text: word, style },
    { text: only.text.slice(match.index + word.length), style: "" },
  ].filter((s) => s.text !== "");
}
