import { oneOf, text } from "../../query/search";

export interface OverviewSearch {
  /** The map, or the same data as a table. */
  view?: "table" | undefined;
  /** The node whose side panel is open. */
  node?: string | undefined;
  /** Groups that stand open on a large map, comma separated. */
  open?: string | undefined;
}
export const readOverviewSearch = (raw: Record<string, unknown>): OverviewSearch => ({
  view: oneOf(raw.view, ["table"]),
  node: text(raw.node),
  open: text(raw.open),
});
