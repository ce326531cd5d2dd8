// The JSON that /api/v1 and the live feed speak. The server's shapes (src/api/v1) are tested against their OpenAPI document;
// this file is the browser's reading of it. Times are Unix microseconds (`_us`), durations nanoseconds (`_ns`), rates per second.

export type Micros = number;
export type Nanos = number;

export type State = "ready" | "starting" | "stopping" | "stopped" | "detached" | "degraded" | "failing";
export type Source = "built_in" | "supervised" | "amqp" | "tunnel" | "telemetry";
/** Computed on the server so that map, tables and charts agree. */
export type Tone = "normal" | "warn" | "err";

// ---- GET /api/v1/services, live state channel "services" (key: `${space} ${name}`) ----
export interface Service {
  space: string;
  name: string;
  /** Colour slot 1-12+, in order of first attach; gateway is 1. */
  slot: number;
  state: State;
  /** Why, in words; empty when ready. */
  reason: string;
  tone: Tone;
  sources: Source[];
  /** True where reactor owns the process: start, stop and restart exist. */
  owned: boolean;
  /** `/orders`, or null when it answers no HTTP. */
  route: string | null;
  language: string | null;
  rate: number | null;
  error_share: number | null;
  p50_ns: Nanos | null;
  p95_ns: Nanos | null;
  /** p95 per 10 s bucket over the last 5 min, null where there was no traffic. */
  latency_spark: (Nanos | null)[];
  /** requests per 10 s bucket over the last 5 min. */
  rate_spark: number[];
  cpu_share: number | null;
  memory_bytes: number | null;
  since_us: Micros | null;
  restart_count: number;
  last_line: string | null;
  instances: Instance[];
}
export interface Instance {
  id: number;
  name: string;
  state: State;
  reason: string;
  source: Source;
  pid: number | null;
  http: string | null;
  cpu_share: number | null;
  memory_bytes: number | null;
  since_us: Micros;
  restart_count: number;
}

// ---- GET /api/v1/services/{name}/console?instance=&before=&limit= (a Page), live stream "console" (with service and instance) ----
export interface ConsoleLine {
  seq: number;
  at_us: Micros;
  kind: "stdout" | "stderr" | "lifecycle";
  /** ANSI escape sequences are kept. */
  text: string;
}

// ---- live state channel "map", GET /api/v1/map: topology from real traffic, last 10 s ----
// Live keys: `node ${id}` with a MapNode, `edge ${from} > ${to}` with a MapEdge.
export interface TrafficMap {
  nodes: MapNode[];
  edges: MapEdge[];
}
export interface MapNode {
  /** `caller:curl`, `service:/ orders`, `queue:/ worker.orders`, `outside:postgres`, `gateway` */
  id: string;
  kind: "caller" | "gateway" | "service" | "queue" | "outside" | "block";
  /** 0 callers, 1 gateway, 2 services, 3 queues, 4 consumers; outside and blocks stand in the bottom lane. */
  column: 0 | 1 | 2 | 3 | 4;
  name: string;
  slot: number | null;
  state: State | null;
  tone: Tone;
  rate: number | null;
  error_share: number | null;
  p95_ns: Nanos | null;
  instances: State[];
  queue: { ready: number; unacked: number; limit: number | null; wait_ns: Nanos | null } | null;
}
export interface MapEdge {
  from: string;
  to: string;
  rate: number;
  error_share: number;
  p95_ns: Nanos | null;
  tone: Tone;
  /** Last seen; older than 60 s is drawn dashed. */
  last_us: Micros;
}

// ---- live state channel "overview" (key: the field's name), GET /api/v1/overview ----
export interface Overview {
  version: string;
  started_us: Micros;
  space: string;
  spaces: string[];
  /** `memory` until the store exists: messages are not on disk. */
  message_storage: "memory" | "disk";
  telemetry: Ledger;
  memory_bytes: number;
  cpu_share: number;
  /** Share of the runtime's own traces kept, 0 to 1. */
  sample_rate: number;
  services: number;
  services_attention: number;
  queues: number;
  connections: number;
  routes: number;
  errors_unread: number;
  ui: "built" | "fallback";
}
export interface Ledger {
  spans: SignalLedger;
  logs: SignalLedger;
  points: SignalLedger;
  bytes: number;
  bytes_max: number;
}
export interface SignalLedger {
  received: number;
  kept: number;
  evicted: number;
  dropped: number;
}

// ---- GET /api/v1/tape?to_us=&range_s= ; live state channel "tape": the last 15 min ----
// Live keys: each bucket's start in microseconds with `[requests, failed]` (null where nothing was measured), and `frame` with
// `{ from_us, bucket_us, markers, gaps }`.
export interface Tape {
  from_us: Micros;
  bucket_us: number;
  requests: (number | null)[];
  failed: (number | null)[];
  markers: { at_us: Micros; kind: "change" | "exit"; text: string; href: string | null }[];
  gaps: { from_us: Micros; to_us: Micros; reason: string }[];
}

// ---- GET /api/v1/happenings, live stream "happenings" ----
export interface Happening {
  seq: number;
  at_us: Micros;
  name: string;
  severity: "info" | "warn" | "error";
  space: string;
  service: string | null;
  line: string;
}

// ---- GET /api/v1/logs, live stream "logs" ----
export interface LogRow {
  seq: number;
  at_us: Micros;
  severity: number;
  level: "trace" | "debug" | "info" | "warn" | "error" | "fatal";
  service: string;
  instance: string;
  scope: string;
  body: string;
  trace_id: string | null;
  span_id: string | null;
  attributes: Record<string, unknown>;
}
export interface Page<T> {
  rows: T[];
  /** Pass as `before` for the next older page; null at the oldest kept. */
  before: number | null;
  matched: number;
  outside: number;
  oldest_us: Micros | null;
  took_ns: Nanos;
}
// GET /api/v1/logs/histogram?query=&from_us=&to_us=&buckets=
export interface Histogram {
  from_us: Micros;
  bucket_us: number;
  error: number[];
  warn: number[];
  rest: number[];
}

// ---- GET /api/v1/traces, live stream "traces" (a row again when it changed: same trace_id) ----
export interface TraceRow {
  seq: number;
  trace_id: string;
  started_us: Micros;
  duration_ns: Nanos;
  root: string;
  root_service: string;
  services: string[];
  spans: number;
  errors: number;
  /** HTTP status or `ok`/`error`. */
  status: string;
  /** No root end seen yet. */
  open: boolean;
}
// ---- GET /api/v1/traces/{trace_id} ----
export interface Trace {
  trace_id: string;
  started_us: Micros;
  /** Root answered. */
  answered_ns: Nanos | null;
  finished_ns: Nanos;
  spans: SpanRow[];
  logs: LogRow[];
  /** Where the time went, only if one step is above 60 %. */
  verdict: string | null;
  missing_parents: string[];
}
export interface SpanRow {
  span_id: string;
  parent: string | null;
  /** Set by reactor without a header from the caller. */
  inferred: boolean;
  name: string;
  kind: "internal" | "server" | "client" | "producer" | "consumer";
  /** Offset from the trace's start. */
  start_ns: Nanos;
  duration_ns: Nanos;
  service: string;
  instance: string;
  /** Recorded by reactor itself. */
  own: boolean;
  /** A queue, lock or backoff wait. */
  wait: boolean;
  open: boolean;
  status: "unset" | "ok" | "error";
  status_text: string;
  attributes: Record<string, unknown>;
  events: { at_ns: Nanos; name: string; attributes: Record<string, unknown> }[];
  links: { trace_id: string; span_id: string }[];
}

// ---- GET /api/v1/metrics: instruments; GET /api/v1/metrics/query?name=&service=&group=&from_us=&to_us=&points= ----
export interface Instrument {
  name: string;
  description: string;
  unit: string;
  kind: "gauge" | "counter" | "up_down_counter" | "histogram" | "summary";
  services: string[];
  attributes: string[];
  series: number;
}
export interface Series {
  name: string;
  labels: Record<string, string>;
  service: string;
  /** One entry a bucket; null is a gap, never interpolated. `min`/`max` bound the bucket for drawing. */
  values: (number | null)[];
  min: (number | null)[];
  max: (number | null)[];
}
export interface SeriesAnswer {
  from_us: Micros;
  bucket_us: number;
  unit: string;
  /** rate (counters), value (gauges), p50/p95/p99/count (histograms) */
  shows: string;
  series: Series[];
}

// ---- engine metrics: instruments of the service `reactor`, one point a second, that the charts of Overview and Queues read ----
// `reactor.gateway.requests`, `reactor.gateway.failed` (counters), `reactor.gateway.duration` (histogram, s);
// `reactor.messages.published`, `reactor.messages.delivered` (counters); with the attributes `space` and `queue`:
// `reactor.queue.published`, `reactor.queue.delivered` (counters), `reactor.queue.ready`, `reactor.queue.unacked` (gauges),
// `reactor.queue.wait` (gauge, s: p95 of the messages delivered since the last point). A histogram answers `GET metrics/query` with
// one series each for p50, p95 and p99, told apart by `Series.name`.

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

// ---- GET /api/v1/policies; PUT and DELETE /api/v1/policies/{space}/{name}?operator= ----
export interface PolicyRow {
  space: string;
  name: string;
  pattern: string;
  apply_to: string;
  definition: Record<string, unknown>;
  priority: number;
  operator: boolean;
  queues: number;
  exchanges: number;
}
// ---- GET /api/v1/users; PUT and DELETE /api/v1/users/{name} ----
export interface UserRow {
  name: string;
  tags: string[];
  has_password: boolean;
  max_connections: number | null;
  max_channels: number | null;
  connections: number;
  spaces: string[];
}
// ---- GET /api/v1/permissions; PUT and DELETE /api/v1/permissions/{space}/{user} ----
export interface PermissionRow {
  user: string;
  space: string;
  configure: string;
  write: string;
  read: string;
}
// ---- GET, PUT and DELETE /api/v1/spaces/{space} ----
export interface SpaceRow {
  name: string;
  description: string;
  tags: string[];
  default_queue_type: string | null;
  max_connections: number | null;
  max_queues: number | null;
  queues: number;
  exchanges: number;
  connections: number;
  ready: number;
  unacked: number;
}

// ---- GET /api/v1/ports, live state channel "doors" (key: name) ----
export interface Door {
  name: string;
  speaks: string;
  address: string | null;
  /** `off`, `listening`, or why not. */
  state: string;
  accepted: number;
  last_us: Micros | null;
}
// ---- GET /api/v1/snippets: the ten-line service, the very files the tests run ----
export interface Snippet {
  language: string;
  title: string;
  install: string;
  run: string;
  file: string;
  text: string;
}

// ---- live feed: WebSocket GET /api/v1/live, JSON text frames ----
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
/** RFC 9457. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  next?: string;
  trace_id?: string;
  /** Offset of the offending character in a query. */
  position?: number;
}

// GET /api/v1/traces/scatter?query=&from_us=&to_us=&points=
export interface ScatterPoint {
  trace_id: string;
  started_us: Micros;
  duration_ns: Nanos;
  failed: boolean;
  open: boolean;
}
export interface Scatter {
  points: ScatterPoint[];
  matched: number;
}
