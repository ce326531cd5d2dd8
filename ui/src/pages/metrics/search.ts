import { text } from "../../query/search";

export interface MetricsSearch {
  q?: string | undefined;
  /** Instruments on the board, comma separated. */
  show?: string | undefined;
}
export const readMetricsSearch = (raw: Record<string, unknown>): MetricsSearch => ({
  q: text(raw.q),
  show: text(raw.show),
});
