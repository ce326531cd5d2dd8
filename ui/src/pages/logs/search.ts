import { amount, text } from "../../query/search";

export interface LogsSearch {
  q?: string | undefined;
  /** Sequence number of the opened row. */
  row?: number | undefined;
}
export const readLogsSearch = (raw: Record<string, unknown>): LogsSearch => ({ q: text(raw.q), row: amount(raw.row) });
