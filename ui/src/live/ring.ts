// A bounded list of rows and gaps with stable positions. Positions only grow: a row keeps its position for as long as it is
// kept, whatever is appended, loaded before it or evicted, so a reader can be anchored to one.

export interface Gap {
  /** Rows that matched and passed unsent; still kept by the server. */
  skipped: number;
  /** Rows the server had to evict before they could be sent. */
  evicted: number;
  /** The process behind the feed is another one: sequence numbers begin again. */
  restarted: boolean;
}
export interface Entry<T> {
  position: number;
  row: T | null;
  gap: Gap | null;
}
interface Slot<T> {
  row: T | null;
  gap: Gap | null;
}

/** Evicting a tenth at a time moves memory once per thousands of rows instead of once per row. */
const EVICT_SHARE = 0.1;

export class Ring<T> {
  private slots: Slot<T>[] = [];
  private base = 0;
  private positions: Map<unknown, number> | null = null;

  constructor(
    private readonly capacity: number,
    /** With a key, a row that comes again replaces the one that stands. */
    private readonly key: ((row: T) => unknown) | null = null,
  ) {
    if (key) this.positions = new Map();
  }

  get first(): number {
    return this.base;
  }
  /** One past the newest. */
  get next(): number {
    return this.base + this.slots.length;
  }
  get length(): number {
    return this.slots.length;
  }

  /** Appends, or replaces in place. Returns the number of rows that are new. Over its capacity the oldest go, unless they are held. */
  append(rows: readonly T[], held = false): number {
    let fresh = 0;
    for (const row of rows) {
      const id = this.key?.(row);
      const known = this.positions?.get(id);
      if (known !== undefined && known >= this.base) {
        this.slots[known - this.base] = { row, gap: null };
        continue;
      }
      this.positions?.set(id, this.next);
      this.slots.push({ row, gap: null });
      fresh += 1;
    }
    if (!held) this.evict();
    return fresh;
  }

  /** Only replaces rows that stand already. Returns how many did. */
  replace(rows: readonly T[]): number {
    if (!this.key || !this.positions) return 0;
    let replaced = 0;
    for (const row of rows) {
      const known = this.positions.get(this.key(row));
      if (known === undefined || known < this.base) continue;
      this.slots[known - this.base] = { row, gap: null };
      replaced += 1;
    }
    return replaced;
  }

  /** Says that rows are missing here; joins a gap that already stands at the end. */
  appendGap(gap: Gap): void {
    const last = this.slots.at(-1)?.gap;
    if (last && !gap.restarted) {
      last.skipped += gap.skipped;
      last.evicted += gap.evicted;
      return;
    }
    this.slots.push({ row: null, gap: { ...gap } });
  }

  /** Older rows loaded on request: positions before the first, possibly below zero. `gapAt` is replaced when given. */
  prepend(rows: readonly T[]): void {
    this.slots.unshift(...rows.map((row) => ({ row, gap: null })));
    this.base -= rows.length;
    if (this.positions && this.key)
      for (const [i, row] of rows.entries()) this.positions.set(this.key(row), this.base + i);
  }

  /** `count` entries from `from`, clipped to what is kept. */
  window(from: number, count: number): Entry<T>[] {
    const start = Math.max(0, from - this.base);
    const end = Math.min(this.slots.length, from + count - this.base);
    const out: Entry<T>[] = [];
    for (let i = start; i < end; i += 1) out.push({ position: this.base + i, ...(this.slots[i] as Slot<T>) });
    return out;
  }

  private evict(): void {
    if (this.slots.length <= this.capacity) return;
    const drop = this.slots.length - Math.floor(this.capacity * (1 - EVICT_SHARE));
    const gone = this.slots.splice(0, drop);
    this.base += drop;
    if (!this.positions || !this.key) return;
    for (const slot of gone) if (slot.row) this.positions.delete(this.key(slot.row));
  }
}
