import type { ListState } from "../../parts/ShortList";
import { oneOf, text } from "../../query/search";

export interface AccessSearch {
  tab?: "permissions" | "topics" | "spaces" | undefined;
  q?: string | undefined;
  sort?: string | undefined;
  /** The opened row, or `+` for a new one. */
  open?: string | undefined;
}
export const readAccessSearch = (raw: Record<string, unknown>): AccessSearch => ({
  tab: oneOf(raw.tab, ["permissions", "topics", "spaces"]),
  q: text(raw.q),
  sort: text(raw.sort),
  open: text(raw.open),
});

export type Change = (next: Partial<AccessSearch>, replace?: boolean) => void;
/** `open` of an entry that is to be made. */
export const NEW = "+";

export interface TabProps {
  search: AccessSearch;
  change: Change;
}
export const listState = ({ search, change }: TabProps): ListState => ({
  q: search.q,
  sort: search.sort,
  onSort: (sort) => change({ sort }, true),
  open: search.open,
  onOpen: (open) => change({ open }),
});
