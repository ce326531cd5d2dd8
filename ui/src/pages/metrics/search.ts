import { text } from "../../query/search";

export interface MetricsSearch {
  q?: string | undefined;
  /** The board's cards, see board.ts; absent until the reader chose, `none` when emptied. */
  show?: string | undefined;
}
export const readMetricsSearch = (raw: Record<string, unknown>): MetricsSearch => ({
  q: text(raw.q),
  show: text(raw.show),
});
