import { oneOf, text, yes } from "../../query/search";

export interface TracesSearch {
  q?: string | undefined;
  /** Trace whose side panel is open. */
  trace?: string | undefined;
  sort?: string | undefined;
}
export const readTracesSearch = (raw: Record<string, unknown>): TracesSearch => ({
  q: text(raw.q),
  trace: text(raw.trace),
  sort: text(raw.sort),
});

export interface TraceSearch {
  q?: string | undefined;
  span?: string | undefined;
  view?: "table" | undefined;
  /** Rows of reactor itself are hidden. */
  plain?: true | undefined;
  /** Log rows are hidden. */
  quiet?: true | undefined;
}
export const readTraceSearch = (raw: Record<string, unknown>): TraceSearch => ({
  q: text(raw.q),
  span: text(raw.span),
  view: oneOf(raw.view, ["table"]),
  plain: yes(raw.plain),
  quiet: yes(raw.quiet),
});
