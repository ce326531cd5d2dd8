// The live feed: WebSocket GET /api/v1/live, JSON text frames.

import type { Problem } from "./node";
import type { Micros } from "./units";

export type LiveChannel =
  | "overview"
  | "services"
  | "map"
  | "tape"
  | "queues"
  | "exchanges"
  | "connections"
  | "doors" // state: last value of changed keys
  | "logs"
  | "traces"
  | "happenings"
  | "console"; // streams: rows with sequence numbers
export type ClientFrame =
  | {
      op: "subscribe";
      id: number;
      channel: LiveChannel;
      query?: string;
      service?: string;
      instance?: string;
      space?: string;
      cursor?: number | null;
      backfill?: number;
    }
  | { op: "ack"; id: number; cursor: number }
  | { op: "unsubscribe"; id: number }
  | { op: "ping"; at: number };
export type ServerFrame =
  /** `epoch` changes when the process does: cursors of another epoch are void. */
  | { kind: "hello"; epoch: string; version: string; now_us: Micros }
  /** State: `set` holds changed keys (all of them when `full`). Ack with `cursor` to get the next. */
  | { kind: "state"; id: number; cursor: number; full: boolean; set: Record<string, unknown>; gone: string[] }
  /** Stream: rows after the last acknowledged cursor, oldest first. `skipped` rows matched, passed and are still kept (load them
   *  by `before`); `evicted` rows could not be sent before they went. Both counts are exact. */
  | { kind: "rows"; id: number; cursor: number; rows: unknown[]; skipped: number; evicted: number }
  | { kind: "refused"; id: number; problem: Problem }
  | { kind: "pong"; at: number };
