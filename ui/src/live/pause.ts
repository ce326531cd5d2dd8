// Why the page holds still. State values freeze only when the reader said so; lists also hold when read, opened or out of range.

import { Store } from "./store";

export type PauseReason = "key" | "scroll" | "open" | "range";

class Pause {
  private reasons = new Store<ReadonlySet<PauseReason>>(new Set());
  /** Rows that came since, counted by the view that holds them back. */
  readonly fresh = new Store(0);
  /** What the pill and `End` do besides clearing the reasons: the view scrolls to its live end. */
  private resumers = new Set<() => void>();

  readonly get = () => this.reasons.get();
  readonly subscribe = this.reasons.subscribe;

  freezesState(): boolean {
    return this.reasons.get().has("key");
  }
  set(reason: PauseReason, on: boolean): void {
    const now = this.reasons.get();
    if (now.has(reason) === on) return;
    const next = new Set(now);
    if (on) next.add(reason);
    else next.delete(reason);
    if (next.size === 0) this.fresh.set(0);
    this.reasons.set(next);
  }
  toggle(): void {
    if (this.reasons.get().size === 0) this.set("key", true);
    else this.resume();
  }
  resume(): void {
    this.fresh.set(0);
    this.reasons.set(new Set());
    for (const resume of [...this.resumers]) resume();
  }
  onResume(resume: () => void): () => void {
    this.resumers.add(resume);
    return () => this.resumers.delete(resume);
  }
}

export const paused = new Pause();
