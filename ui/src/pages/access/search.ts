import { oneOf, text } from "../../query/search";

export interface AccessSearch {
  tab?: "permissions" | "spaces" | undefined;
  q?: string | undefined;
  sort?: string | undefined;
  /** The opened row, or `+` for a new one. */
  open?: string | undefined;
}
export const readAccessSearch = (raw: Record<string, unknown>): AccessSearch => ({
  tab: oneOf(raw.tab, ["permissions", "spaces"]),
  q: text(raw.q),
  sort: text(raw.sort),
  open: text(raw.open),
});
