import { text } from "../../query/search";

export interface TracesSearch {
  q?: string | undefined;
  /** Trace whose side panel is open. */
  trace?: string | undefined;
}
export const readTracesSearch = (raw: Record<string, unknown>): TracesSearch => ({
  q: text(raw.q),
  trace: text(raw.trace),
});

export interface TraceSearch {
  q?: string | undefined;
  span?: string | undefined;
}
export const readTraceSearch = (raw: Record<string, unknown>): TraceSearch => ({
  q: text(raw.q),
  span: text(raw.span),
});
