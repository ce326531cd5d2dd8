// Order and choice for tables, pure: sorting with unknown values last, an order that holds still, chosen columns in the URL.

export interface SortOrder {
  id: string;
  down: boolean;
}
/** `-rate` sorts down, `rate` up. */
export function readSort(text: string | undefined): SortOrder | null {
  if (!text) return null;
  return text.startsWith("-") ? { id: text.slice(1), down: true } : { id: text, down: false };
}
/** A press on a head: numbers begin with the largest, text with the first; then the other way; then as it was. */
export function nextSort(current: SortOrder | null, id: string, number: boolean): string | undefined {
  if (current?.id !== id) return number ? `-${id}` : id;
  if (current.down === number) return number ? id : `-${id}`;
  return undefined;
}

type Sortable = number | string | null | undefined;
export function compare(a: Sortable, b: Sortable, down: boolean): number {
  const noA = a === null || a === undefined;
  const noB = b === null || b === undefined;
  if (noA || noB) return noA && noB ? 0 : noA ? 1 : -1;
  const order =
    typeof a === "string" || typeof b === "string"
      ? String(a).localeCompare(String(b), "en", { numeric: true })
      : a - b;
  return down ? -order : order;
}

/** While the pointer reads a table its order stays: what goes is left out, what comes stands at the end. */
export function holdOrder<T>(rows: readonly T[], keyOf: (row: T) => string, held: readonly string[]): T[] {
  const byKey = new Map(rows.map((row) => [keyOf(row), row]));
  const out: T[] = [];
  for (const key of held) {
    const row = byKey.get(key);
    if (row === undefined) continue;
    out.push(row);
    byKey.delete(key);
  }
  out.push(...byKey.values());
  return out;
}

export interface ColumnChoice {
  hidden: ReadonlySet<string>;
  shown: ReadonlySet<string>;
  widths: ReadonlyMap<string, number>;
}
/** `-cpu,+pid,state:194`: hidden, shown although hidden by default, and sized columns. */
export function readColumns(text: string | undefined): ColumnChoice {
  const hidden = new Set<string>();
  const shown = new Set<string>();
  const widths = new Map<string, number>();
  for (const part of (text ?? "").split(",")) {
    if (part.startsWith("-")) hidden.add(part.slice(1));
    else if (part.startsWith("+")) shown.add(part.slice(1));
    else {
      const [id, width] = part.split(":");
      if (id && Number(width) > 0) widths.set(id, Number(width));
    }
  }
  return { hidden, shown, widths };
}
export function writeColumns(choice: ColumnChoice): string | undefined {
  const parts = [
    ...[...choice.hidden].map((id) => `-${id}`),
    ...[...choice.shown].map((id) => `+${id}`),
    ...[...choice.widths].map(([id, w]) => `${id}:${Math.round(w)}`),
  ];
  return parts.join(",") || undefined;
}
