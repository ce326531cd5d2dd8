// What every area speaks in. Times are Unix microseconds (`_us`), durations nanoseconds (`_ns`), rates per second.

export type Micros = number;
export type Nanos = number;

export type State = "ready" | "starting" | "stopping" | "stopped" | "detached" | "degraded" | "failing";
export type Source = "built_in" | "supervised" | "amqp" | "tunnel" | "telemetry";
/** Computed on the server so that map, tables and charts agree. */
export type Tone = "normal" | "warn" | "err";
