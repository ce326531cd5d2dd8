// Rows of a fixed range: asked from the API page by page as the reader goes back. The same face as the live feed, so that one list
// draws both.

import { get, problemFrom } from "../../api/client";
import type { LogRow, Micros, Page } from "../../api/types";
import type { RowsView } from "../../live/feed";
import type { Entry } from "../../live/ring";
import { Store } from "../../live/store";
import type { RowSource } from "../../parts/rows";

const PAGE = 500;

export interface LogQuery {
  query: string;
  space: string;
  from_us?: Micros | undefined;
  to_us?: Micros | undefined;
}

/** The page of rows before a sequence number, or the newest one. */
export const logPage = (q: LogQuery, before: number | null, signal?: AbortSignal): Promise<Page<LogRow>> =>
  get<Page<LogRow>>("logs", { ...q, before, limit: PAGE }, signal);

export class PastRows implements RowSource<LogRow> {
  private readonly view = new Store<RowsView>({
    first: 0,
    next: 0,
    revision: 0,
    received: 0,
    begun: false,
    problem: null,
  });
  private rows: LogRow[] = [];
  private before: number | null = null;
  private loading = false;
  private readonly abort = new AbortController();
  readonly counts = new Store<{ matched: number; outside: number; took_ns: number } | null>(null);

  constructor(private readonly query: LogQuery) {
    void this.load();
  }
  readonly get = this.view.get;
  readonly subscribe = this.view.subscribe;
  follow(): void {}
  want(): void {}
  peek(position: number): Entry<LogRow> | undefined {
    const row = this.rows[position - this.view.get().first];
    return row ? { position, row, gap: null } : undefined;
  }
  older(): void {
    if (this.before !== null) void this.load();
  }
  destroy(): void {
    this.abort.abort();
  }

  private async load(): Promise<void> {
    if (this.loading) return;
    this.loading = true;
    const view = this.view.get();
    try {
      const page = await logPage(this.query, this.before, this.abort.signal);
      this.rows = [...page.rows, ...this.rows];
      this.before = page.before;
      if (!this.counts.get()) this.counts.set(page);
      const first = view.first - page.rows.length;
      this.view.set({ ...view, first, begun: true, revision: view.revision + 1, problem: null });
    } catch (error) {
      if (!this.abort.signal.aborted) this.view.set({ ...view, begun: true, problem: problemFrom(error) });
    } finally {
      this.loading = false;
    }
  }
}
