import { oneOf, text, yes } from "../../query/search";

export interface ServicesSearch {
  q?: string | undefined;
  attention?: true | undefined;
  /** Selected service, and instance of it. */
  service?: string | undefined;
  instance?: string | undefined;
  tab?: "details" | undefined;
  wrap?: true | undefined;
  sort?: string | undefined;
  cols?: string | undefined;
}
export const readServicesSearch = (raw: Record<string, unknown>): ServicesSearch => ({
  q: text(raw.q),
  attention: yes(raw.attention),
  service: text(raw.service),
  instance: text(raw.instance),
  tab: oneOf(raw.tab, ["details"]),
  wrap: yes(raw.wrap),
  sort: text(raw.sort),
  cols: text(raw.cols),
});
