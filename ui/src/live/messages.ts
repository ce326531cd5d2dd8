// What the page and the worker that owns the live socket say to each other.

import type { LiveChannel, Micros, Problem } from "../api/types";
import type { Entry } from "./ring";

export interface Spec {
  channel: LiveChannel;
  query?: string | undefined;
  service?: string | undefined;
  instance?: string | undefined;
  space?: string | undefined;
  /** Rows of the past to begin with (streams). */
  backfill?: number | undefined;
}
export interface RowOptions {
  capacity: number;
  /** Field whose value identifies a row: a row that comes again replaces the one that stands. */
  key?: string | undefined;
}

export type ToWorker =
  | { do: "connect"; url: string }
  | { do: "open-state"; sub: number; spec: Spec }
  | { do: "open-rows"; sub: number; spec: Spec; options: RowOptions }
  | { do: "close"; sub: number }
  | { do: "window"; sub: number; from: number; count: number; token: number }
  /** Follow the live end: send the newest `count` entries along with every notice. Zero reads elsewhere: nothing is evicted. */
  | { do: "tail"; sub: number; count: number }
  | { do: "older"; sub: number; rows: unknown[] }
  | { do: "hidden"; hidden: boolean };

export type LinkState = "connecting" | "open" | "lost";
export interface Link {
  state: LinkState;
  /** Local clock, when this state began. */
  since_ms: number;
  epoch: string | null;
  version: string | null;
  rtt_ms: number | null;
  /** Server clock minus local clock. */
  offset_us: Micros;
}
export interface StateBeat {
  sub: number;
  full: boolean;
  set: Record<string, unknown>;
  gone: string[];
}
export interface RowsNotice {
  sub: number;
  first: number;
  next: number;
  /** Grows when rows were replaced in place or loaded before the first: cached windows are stale. */
  revision: number;
  /** Rows received since the subscription began. */
  received: number;
  tail: Entry<unknown>[];
  /** The backfill has arrived (it may be empty). */
  begun: boolean;
}
export type FromWorker =
  | { is: "link"; link: Link }
  | { is: "beat"; states: StateBeat[] }
  | { is: "rows"; notices: RowsNotice[] }
  | { is: "window"; sub: number; token: number; revision: number; entries: Entry<unknown>[] }
  | { is: "refused"; sub: number; problem: Problem };
