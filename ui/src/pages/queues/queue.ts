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

/** A body as it should be read: JSON set out, text as it is, bytes as hex. */
export function bodyText(m: Pick<PeekedMessage, "body" | "encoding">): { text: string; kind: "json" | "text" | "hex" } {
  if (m.encoding === "base64") return { text: hex(m.body), kind: "hex" };
  try {
    const value: unknown = JSON.parse(m.body);
    if (typeof value === "object" && value !== null) return { text: JSON.stringify(value, null, 2), kind: "json" };
  } catch {
    // Not JSON, or cut: shown as it came.
  }
  return { text: m.body, kind: "text" };
}
function hex(base64: string): string {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const row = [...bytes.slice(at, at + 16)];
    const digits = row.map((b) => b.toString(16).padStart(2, "0")).join(" ");
    const text = row.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : "·")).join("");
    lines.push(`${at.toString(16).padStart(4, "0")}  ${digits.padEnd(47)}  ${text}`);
  }
  return lines.join("\n");
}

export function messageMatches(m: PeekedMessage, text: string): boolean {
  const wanted = text.toLowerCase();
  const hay = [
    m.routing_key,
    m.exchange,
    m.encoding === "utf8" ? m.body : "",
    JSON.stringify(m.headers),
    JSON.stringify(m.properties),
  ];
  return hay.some((h) => h.toLowerCase().includes(wanted));
}

/** A property or header value on one line. */
export const valueText = (v: unknown): string => (typeof v === "string" ? v : JSON.stringify(v));
