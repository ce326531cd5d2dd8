// Logs, traces, metrics, happenings and the tape.

import type { Micros, Nanos } from "./units";

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
  /** The queue that the line names, unless it is told that the queue is gone. */
  queue: string | null;
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
  /** Method and path, `GET /orders/42`, where the root is a request: its name says only the route. */
  request: string | null;
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
