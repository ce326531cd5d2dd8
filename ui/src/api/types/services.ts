// Services, their consoles, and the map of what calls what.

import type { Micros, Nanos, Source, State, Tone } from "./units";

// ---- GET /api/v1/services, live state channel "services" (key: `${space} ${name}`) ----
export interface Service {
  space: string;
  name: string;
  /** Colour slot 1-12+, the lowest free one at first sight; gateway is 1. */
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
  /** When the first of its instances began; null when it has none. */
  since_us: Micros | null;
  /** When its last instance left, or when it was last heard of if only its telemetry is known; null while it is here. */
  left_us: Micros | null;
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
