// How a followed message stands, in a word or two. Pure.

import type { FollowedMessage } from "../../api/types";

export interface Fate {
  words: string;
  tone: "normal" | "quiet" | "warn" | "err";
}

const WORDS: Record<string, Fate> = {
  acked: { words: "acked", tone: "quiet" },
  rejected: { words: "rejected", tone: "warn" },
  expired: { words: "expired", tone: "warn" },
  dropped: { words: "dropped", tone: "warn" },
  kept: { words: "waits to be dead-lettered", tone: "warn" },
  "dead-lettered": { words: "dead-lettered", tone: "warn" },
  returned: { words: "returned", tone: "err" },
  unroutable: { words: "no queue", tone: "err" },
};

/** The worst that happened to a copy; while one is open, where it is. */
export function endOf(m: Pick<FollowedMessage, "steps" | "open">): Fate {
  const order = ["unroutable", "returned", "dead-lettered", "kept", "dropped", "expired", "rejected"];
  const worst = order.find((what) => m.steps.some((s) => s.what === what));
  if (worst) return WORDS[worst] as Fate;
  if (m.open > 0) {
    const out = m.steps.filter((s) => s.what === "delivered").length;
    const back = m.steps.filter((s) => s.what === "acked" || s.what === "requeued").length;
    return out > back ? { words: "being worked on", tone: "normal" } : { words: "waiting", tone: "normal" };
  }
  const last = m.steps.findLast((s) => s.what === "acked" || (s.what === "delivered" && s.no_ack));
  return last?.what === "delivered" ? { words: "delivered", tone: "quiet" } : (WORDS.acked as Fate);
}
