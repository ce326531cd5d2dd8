// The process itself: what it holds, where it listens, what it refuses.

import type { Micros } from "./units";

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
// ---- GET /api/v1/environment: for a service started by hand, as the start block says it ----
export interface Variable {
  name: string;
  value: string;
}
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
