// What the palette finds for a text, from what the page already knows. Pure.

export type Group = "Go to" | "Run" | "Search";

export interface Candidate {
  id: string;
  group: Group;
  /** What is matched and shown. */
  text: string;
  /** More words it is found by, not shown. */
  also?: string;
}

export interface Match<T extends Candidate> {
  item: T;
  /** Stretches of `text` that matched. */
  marks: [number, number][];
}

export type Mode = "all" | "commands" | "trace" | "path";

/** `>` commands only, `#` a trace id, `/` a path. */
export function modeOf(input: string): { mode: Mode; text: string } {
  if (input.startsWith(">")) return { mode: "commands", text: input.slice(1).trim() };
  if (input.startsWith("#")) return { mode: "trace", text: input.slice(1).trim() };
  if (input.startsWith("/")) return { mode: "path", text: input.trim() };
  return { mode: "all", text: input.trim() };
}

const TRACE_ID = /^[0-9a-f]{32}$/;
export const isTraceId = (text: string): boolean => TRACE_ID.test(text.toLowerCase());

/** Every word must be found; earlier and at the begin of a word is better. Null when one is missing. */
export function score(item: Candidate, text: string): { points: number; marks: [number, number][] } | null {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const hay = item.text.toLowerCase();
  let points = 0;
  const marks: [number, number][] = [];
  for (const word of words) {
    const at = hay.indexOf(word);
    if (at >= 0) {
      marks.push([at, at + word.length]);
      const starts = at === 0 || /[^a-z0-9]/.test(hay[at - 1] as string);
      points += (at === 0 ? 100 : starts ? 60 : 20 - Math.min(19, at)) + (hay.length === word.length ? 50 : 0);
    } else if (item.also?.toLowerCase().includes(word)) points += 5;
    else return null;
  }
  return { points, marks: marks.sort((a, b) => a[0] - b[0]) };
}

export function find<T extends Candidate>(items: readonly T[], text: string, limit: number): Match<T>[] {
  const found: (Match<T> & { points: number; order: number })[] = [];
  items.forEach((item, order) => {
    const hit = score(item, text);
    if (hit) found.push({ item, marks: hit.marks, points: hit.points, order });
  });
  if (text !== "") found.sort((a, b) => b.points - a.points || a.order - b.order);
  return found.slice(0, limit);
}
