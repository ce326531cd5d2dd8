// What a queue's numbers and arguments mean in words. Pure.

import type { PeekedMessage, Queue } from "../../api/types";

const number = (v: unknown): number | null => (typeof v === "number" && Number.isFinite(v) ? v : null);

export const limitOf = (q: Pick<Queue, "arguments">): number | null => number(q.arguments["x-max-length"]);

/** Seconds until the limit is reached at this rate; null when there is no limit or it does not grow. */
export function fullIn(q: Pick<Queue, "arguments" | "ready" | "in_rate" | "out_rate">): number | null {
  const limit = limitOf(q);
  const net = q.in_rate - q.out_rate;
  if (limit === null || net <= 0.05 || q.ready >= limit) return null;
  return (limit - q.ready) / net;
}

export interface Feature {
  text: string;
  tone?: "warn" | "err";
  title?: string;
}

/** What the queue is, as pills. */
export function features(q: Queue): Feature[] {
  const out: Feature[] = [{ text: String(q.arguments["x-queue-type"] ?? "classic") }];
  if (q.durable) out.push({ text: "durable" });
  if (q.exclusive) out.push({ text: "exclusive" });
  if (q.auto_delete) out.push({ text: "auto-delete" });
  const limit = limitOf(q);
  if (limit !== null) out.push({ text: `limit ${limit.toLocaleString("en-US")}${overflow(q)}` });
  if (q.not_on_disk)
    out.push({
      text: "not on disk",
      tone: "warn",
      title: "Declared durable; messages are kept in memory and do not survive a restart",
    });
  if (q.tone !== "normal")
    out.push({ text: q.in_rate > q.out_rate ? "growing" : "oldest unacked over 30 s", tone: q.tone });
  return out;
}
function overflow(q: Queue): string {
  const how = q.arguments["x-overflow"];
  return typeof how === "string" ? `, ${how.replace("reject-publish", "reject").replace("-", " ")}` : ", drop head";
}

/** Places are counted from 1, positions from 0. */
export const placeOf = (m: Pick<PeekedMessage, "position">): number => m.position + 1;

/** The trace a message belongs to, from its `traceparent`. */
export function traceOf(m: Pick<PeekedMessage, "headers">): string | null {
  const parent = m.headers.traceparent;
  const match = typeof parent === "string" ? /^[0-9a-f]{2}-([0-9a-f]{32})-/.exec(parent) : null;
  return match ? (match[1] as string) : null;
}

/** Who says it published the message. */
export function senderOf(m: Pick<PeekedMessage, "properties">): string | null {
  const from = m.properties.app_id ?? m.properties.user_id;
  return typeof from === "string" && from !== "" ? from : null;
}

export type BodyView = "json" | "text" | "hex";

const jsonOf = (text: string): string | null => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? JSON.stringify(value, null, 2) : null;
  } catch {
    // Not JSON, or cut: shown as it came.
    return null;
  }
};

/** How a body can be read, the best first: JSON set out, text as it is, bytes as hex. */
export function bodyViews(m: Pick<PeekedMessage, "body" | "encoding">): BodyView[] {
  if (m.encoding === "base64") return ["hex"];
  return jsonOf(m.body) === null ? ["text", "hex"] : ["json", "text", "hex"];
}
export function bodyAs(m: Pick<PeekedMessage, "body" | "encoding">, view: BodyView): string {
  if (view === "json") return jsonOf(m.body) ?? m.body;
  if (view === "text") return m.body;
  if (m.encoding === "base64") return hex(Uint8Array.from(atob(m.body), (c) => c.charCodeAt(0)));
  return hex(new TextEncoder().encode(m.body));
}

export interface Death {
  queue: string;
  exchange: string;
  key: string;
  reason: string;
  count: number;
}
/** Where a message died last, as `x-death` says: the newest entry that is not of this queue. */
export function deathOf(m: Pick<PeekedMessage, "headers">, here: string): Death | null {
  const deaths = m.headers["x-death"];
  if (!Array.isArray(deaths)) return null;
  const word = (v: unknown): string => (typeof v === "string" ? v : "");
  for (const death of deaths as Record<string, unknown>[]) {
    const queue = word(death?.queue);
    if (queue === "" || queue === here) continue;
    const keys = death["routing-keys"];
    return {
      queue,
      exchange: word(death.exchange),
      key: Array.isArray(keys) ? word(keys[0]) : "",
      reason: word(death.reason) || "unknown",
      count: number(death.count) ?? 1,
    };
  }
  return null;
}

function hex(bytes: Uint8Array): string {
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const row = [...bytes.slice(at, at + 16)];
    const digits = row.map((b) => b.toString(16).padStart(2, "0")).join(" ");
    const text = row.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : "·")).join("");
    lines.push(`${at.toString(16).padStart(4, "0")}  ${digits.padEnd(47)}  ${text}`);
  }
  return lines.join("\n");
}

const OVERFLOW: Record<string, string> = {
  "drop-head": "the oldest is dropped to make room",
  "reject-publish": "what is published is refused with a nack",
  "reject-publish-dlx": "what is published is refused and dead-lettered",
};
const NO_EFFECT = "accepted, and of no effect here";

/** What an argument of a queue does, in words; null for those that say nothing more than their value. */
export function argumentWords(name: string, value: unknown, q: Pick<Queue, "arguments">): string | null {
  const n = number(value);
  const seconds = n === null ? "" : `${(n / 1000).toLocaleString("en-US")} s`;
  switch (name) {
    case "x-message-ttl":
      return n === null ? null : `messages expire after ${seconds} here`;
    case "x-expires":
      return n === null ? null : `the queue goes after ${seconds} without use`;
    case "x-max-length":
    case "x-max-length-bytes":
      return OVERFLOW[String(q.arguments["x-overflow"] ?? "drop-head")] ?? null;
    case "x-dead-letter-exchange":
      return "rejected, expired and crowded-out messages are published there";
    case "x-dead-letter-strategy":
      return value === "at-least-once"
        ? "with overflow reject-publish, those that nobody takes stay here and are sent again"
        : null;
    case "x-max-priority":
      return "higher priorities are delivered first";
    case "x-single-active-consumer":
      return value === true ? "one consumer at a time, the others wait to take over" : null;
    case "x-queue-mode":
    case "x-queue-version":
    case "x-queue-master-locator":
    case "x-queue-leader-locator":
      return NO_EFFECT;
    default:
      return null;
  }
}

/** How safe the messages are, in one honest sentence. */
export function durabilityWords(q: Pick<Queue, "durable" | "not_on_disk">): string {
  if (!q.durable) return "One copy, in memory. Transient: declared to be lost with a restart.";
  return q.not_on_disk
    ? "One copy, in memory, not on disk. Declared durable, yet its messages do not survive a restart of reactor."
    : "One copy, on disk.";
}

/** A message held longer than this is worth a look. */
export const LONG_HELD_NS = 30e9;

/** A property or header value on one line. */
export const valueText = (v: unknown): string => (typeof v === "string" ? v : JSON.stringify(v));
