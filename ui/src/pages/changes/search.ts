import { text, yes } from "../../query/search";

export interface ChangesSearch {
  q?: string | undefined;
  attention?: true | undefined;
  sort?: string | undefined;
}
export const readChangesSearch = (raw: Record<string, unknown>): ChangesSearch => ({
  q: text(raw.q),
  attention: yes(raw.attention),
  sort: text(raw.sort),
});
