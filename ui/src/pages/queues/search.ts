import { amount, oneOf, text } from "../../query/search";

export const QUEUES_TABS = ["exchanges", "connections", "channels", "consumers", "messages", "policies"] as const;
export interface QueuesSearch {
  tab?: (typeof QUEUES_TABS)[number] | undefined;
  q?: string | undefined;
  sort?: string | undefined;
  cols?: string | undefined;
  /** What is being made, in a dialog. */
  make?: "queue" | "exchange" | "policy" | undefined;
  /** The opened policy. */
  policy?: string | undefined;
  /** The opened message among those followed. */
  message?: number | undefined;
}
export const readQueuesSearch = (raw: Record<string, unknown>): QueuesSearch => ({
  tab: oneOf(raw.tab, QUEUES_TABS),
  q: text(raw.q),
  sort: text(raw.sort),
  cols: text(raw.cols),
  make: oneOf(raw.make, ["queue", "exchange", "policy"]),
  policy: text(raw.policy),
  message: amount(raw.message),
});

export const QUEUE_ACTIONS = ["publish", "move", "redrive", "purge", "delete"] as const;
export type QueueAction = (typeof QUEUE_ACTIONS)[number];
export interface QueueSearch {
  tab?: "bindings" | "settings" | undefined;
  q?: string | undefined;
  standing?: "unacked" | undefined;
  /** Id of the opened message. */
  message?: number | undefined;
  /** The open dialog. */
  act?: QueueAction | undefined;
}
export const readQueueSearch = (raw: Record<string, unknown>): QueueSearch => ({
  tab: oneOf(raw.tab, ["bindings", "settings"]),
  q: text(raw.q),
  standing: oneOf(raw.standing, ["unacked"]),
  message: amount(raw.message),
  act: oneOf(raw.act, QUEUE_ACTIONS),
});

export interface ExchangeSearch {
  /** The key that is tried. */
  key?: string | undefined;
  act?: "publish" | "delete" | undefined;
}
export const readExchangeSearch = (raw: Record<string, unknown>): ExchangeSearch => ({
  key: text(raw.key),
  act: oneOf(raw.act, ["publish", "delete"]),
});

export interface ConnectionSearch {
  tab?: "channels" | "properties" | undefined;
  act?: "close" | undefined;
}
export const readConnectionSearch = (raw: Record<string, unknown>): ConnectionSearch => ({
  tab: oneOf(raw.tab, ["channels", "properties"]),
  act: oneOf(raw.act, ["close"]),
});
