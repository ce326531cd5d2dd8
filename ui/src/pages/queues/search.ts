import { amount, oneOf, text } from "../../query/search";

export interface QueuesSearch {
  tab?: "exchanges" | "connections" | undefined;
  q?: string | undefined;
  sort?: string | undefined;
  cols?: string | undefined;
}
export const readQueuesSearch = (raw: Record<string, unknown>): QueuesSearch => ({
  tab: oneOf(raw.tab, ["exchanges", "connections"]),
  q: text(raw.q),
  sort: text(raw.sort),
  cols: text(raw.cols),
});

export interface QueueSearch {
  tab?: "bindings" | "arguments" | undefined;
  q?: string | undefined;
  /** Place of the opened message. */
  message?: number | undefined;
}
export const readQueueSearch = (raw: Record<string, unknown>): QueueSearch => ({
  tab: oneOf(raw.tab, ["bindings", "arguments"]),
  q: text(raw.q),
  message: amount(raw.message),
});
