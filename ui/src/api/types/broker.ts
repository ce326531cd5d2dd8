// Queues, exchanges, connections, channels and consumers.

import type { Micros, Nanos, Tone } from "./units";

// ---- GET /api/v1/queues, live state channel "queues" (key: `${space} ${name}`) ----
export interface Queue {
  space: string;
  name: string;
  durable: boolean;
  exclusive: boolean;
  auto_delete: boolean;
  arguments: Record<string, unknown>;
  /** Declared durable but not on disk, because messages are kept in memory. */
  not_on_disk: boolean;
  ready: number;
  unacked: number;
  ready_bytes: number;
  consumers: number;
  in_rate: number;
  out_rate: number;
  ack_rate: number;
  redelivered: number;
  wait_p95_ns: Nanos | null;
  oldest_unacked_ns: Nanos | null;
  tone: Tone;
}
// GET /api/v1/queues/{space}/{name}
export interface QueueDetail extends Queue {
  bindings: Binding[];
  consumer_list: Consumer[];
  policy: string | null;
  operator_policy: string | null;
  /** What the two say of it, by the names policies use. */
  policy_sets: Record<string, unknown>;
  fates: Fates;
  /** Dead letters that were refused: they are sent again until somebody takes them. */
  kept: number;
  active_consumer: string | null;
}
/** What became of messages besides being acked, since the queue was declared. */
export interface Fates {
  expired: number;
  purged: number;
  requeued: number;
  rejected: number;
  dropped: number;
  refused: number;
  dead_lettered: number;
}
export interface Binding {
  source: string;
  destination: string;
  destination_type: "queue" | "exchange";
  routing_key: string;
  arguments: Record<string, unknown>;
}
export interface Consumer {
  space: string;
  queue: string;
  tag: string;
  connection_id: number;
  connection: string;
  channel: number;
  service: string | null;
  prefetch: number;
  no_ack: boolean;
  exclusive: boolean;
  unacked: number;
  oldest_unacked_ns: Nanos | null;
}
// GET /api/v1/exchanges, state channel "exchanges" (key: `${space} ${name}`)
export interface Exchange {
  space: string;
  name: string;
  kind: string;
  durable: boolean;
  auto_delete: boolean;
  internal: boolean;
  bindings: number;
  in_rate: number;
  out_rate: number;
}
// GET /api/v1/exchanges/{space}/{name}; the default exchange is `amq.default` there
export interface ExchangeDetail extends Exchange {
  arguments: Record<string, unknown>;
  leads_to: Binding[];
  fed_by: Binding[];
}
// GET /api/v1/connections, state channel "connections" (key: id)
export interface Connection {
  id: number;
  name: string;
  space: string;
  user: string;
  peer: string;
  protocol: string;
  client: string;
  service: string | null;
  channels: number;
  consumers: number;
  in_bytes_rate: number;
  out_bytes_rate: number;
  since_us: Micros;
  blocked: boolean;
}

// GET /api/v1/connections/{id}
export interface ConnectionDetail extends Connection {
  client_properties: Record<string, unknown>;
  channel_list: Channel[];
  consumer_list: Consumer[];
}
export interface Channel {
  connection_id: number;
  connection: string;
  space: string;
  user: string;
  service: string | null;
  number: number;
  consumers: number;
  unacked: number;
  confirms: boolean;
  prefetch_global: number;
}
// ---- long lists, a page at a time: GET /api/v1/queues/page, exchanges/page, connections/page, channels, consumers ?space=&q=&sort=&from=&count= ----
export interface QueuePage {
  rows: Queue[];
  matched: number;
  total: number;
  ready: number;
  unacked: number;
}
export interface Listed<T> {
  rows: T[];
  matched: number;
  total: number;
}
