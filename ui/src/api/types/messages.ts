// Messages: looking at them, moving them, following them, publishing.

import type { Micros, Nanos } from "./units";

// GET /api/v1/queues/{space}/{name}/messages?standing=&from=&count=&body_bytes=&find= : a look, changes nothing
export interface Messages {
  messages: PeekedMessage[];
  looked_at: number;
  ready: number;
  unacked: number;
}
// GET and DELETE /api/v1/queues/{space}/{name}/messages/{id}
export interface PeekedMessage {
  /** Names it within its queue for as long as it is there. */
  id: number;
  position: number;
  exchange: string;
  routing_key: string;
  redelivered: boolean;
  bytes: number;
  properties: Record<string, unknown>;
  headers: Record<string, unknown>;
  body: string;
  encoding: "utf8" | "base64";
  truncated: boolean;
  queued_us: Micros | null;
  /** Who holds it, if it is unacked. */
  holder: Holder | null;
}
export interface Holder {
  connection_id: number;
  connection: string;
  service: string;
  channel: number;
  consumer: string | null;
  delivery_tag: number;
  held_ns: Nanos;
}
// POST /api/v1/queues/{space}/{name}/move {to, first | ids}, POST …/redrive {only?, first | ids}
export interface MovedMessages {
  moved: number;
  left: number;
  placed: Placed[];
}
export interface Placed {
  queue: string;
  first: number;
  last: number;
}
// GET /api/v1/queues/{space}/{name}/redrive
export interface RedrivePlan {
  looked_at: number;
  ready: number;
  origins: RedriveOrigin[];
  without: number;
}
export interface RedriveOrigin {
  queue: string;
  reason: string;
  messages: number;
  exists: boolean;
}
// POST /api/v1/queues/{space}/{name}/purge?first=
export interface Purged {
  messages: number;
}
// ---- GET /api/v1/journeys?space=&text=&exchange=&queue=&before=&limit= ; GET /api/v1/journeys/{space}/{id} ----
export interface FollowedMessages {
  messages: FollowedMessage[];
  kept: number;
  skipped: number;
  /** This question began it: what passed before was not followed. */
  began: boolean;
}
export interface FollowedMessage {
  id: number;
  exchange: string;
  routing_key: string;
  bytes: number;
  properties: Record<string, unknown>;
  headers: Record<string, unknown>;
  body: string;
  encoding: "utf8" | "base64";
  truncated: boolean;
  queues: string[];
  steps: JourneyStep[];
  steps_left_out: number;
  open: number;
}
export interface JourneyStep {
  at_us: Micros;
  what: string;
  queue: string | null;
  connection: string | null;
  channel: number | null;
  user: string | null;
  exchange: string | null;
  reason: string | null;
  queues: number | null;
  redelivered: boolean;
  no_ack: boolean;
}
// POST /api/v1/publish
export interface Published {
  routed: boolean;
}
// POST /api/v1/route {space, exchange, routing_key, headers}
export interface WouldRoute {
  queues: string[];
  routing_key: string | null;
}
