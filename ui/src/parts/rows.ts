// Log rows: fixed heights, pooled elements, drawn from the worker's ring or from pages of the past; no framework. The list follows
// its live end until the reader scrolls up, opens a row or pauses; then what is read does not move, whatever comes or goes.

import type { LogRow, Micros } from "../api/types";
import type { RowsView } from "../live/feed";
import type { Entry } from "../live/ring";
import { onSlots, slotOf } from "../live/slots";
import { gapWords } from "./console";
import { clockMs } from "./format";
import { zone } from "./zone";

/** Where rows come from: the live feed, or a fixed range. */
export interface RowSource<T> {
  get: () => RowsView;
  subscribe: (listener: () => void) => () => void;
  peek: (position: number) => Entry<T> | undefined;
  want: (from: number, to: number) => void;
  follow: (count: number) => void;
}

export interface RowsState {
  following: boolean;
  /** Rows that came since the reader left the live end. */
  fresh: number;
}

interface RowsHooks {
  onState: (state: RowsState) => void;
  onOpen: (row: LogRow) => void;
  /** The reader came near the oldest row. */
  onTop: () => void;
  /** Rows were skipped before this one and are still kept by the server. */
  onGap: (before: LogRow) => void;
  /** The pointer or the selection is at this time. */
  onTime: (at: Micros | null) => void;
}

export const ROW_PX = 22;
const OVERSCAN = 12;
/** Browsers give up on taller elements. */
const HEIGHT_MAX = 8_000_000;

interface Pooled {
  node: HTMLDivElement;
  entry: Entry<LogRow> | undefined;
  drawn: string;
}

export class LogRows {
  readonly scroller = document.createElement("div");
  private readonly sizer = document.createElement("div");
  private readonly pool = new Map<number, Pooled>();
  private readonly stops: (() => void)[] = [];
  private following = true;
  private held = false;
  private first = 0;
  private leftAt = 0;
  private frame = 0;
  private selected: number | null = null;
  private toldTop = Number.NaN;

  constructor(
    host: HTMLElement,
    private readonly source: RowSource<LogRow>,
    private readonly hooks: RowsHooks,
  ) {
    const { scroller, sizer } = this;
    scroller.className = "rows-scroll";
    scroller.tabIndex = 0;
    scroller.setAttribute("role", "grid");
    scroller.setAttribute("aria-label", "Log rows, oldest first");
    scroller.setAttribute("aria-colcount", "4");
    sizer.className = "rows-sizer";
    sizer.setAttribute("role", "rowgroup");
    scroller.append(sizer);
    host.append(scroller);
    scroller.addEventListener("scroll", () => this.onScroll(), { passive: true });
    sizer.addEventListener("click", (event) => this.onClick(event));
    sizer.addEventListener("pointermove", (event) => hooks.onTime(this.entryOf(event)?.row?.at_us ?? null));
    sizer.addEventListener("pointerleave", () => hooks.onTime(null));
    const observer = new ResizeObserver(() => this.request());
    observer.observe(scroller);
    this.stops.push(
      () => observer.disconnect(),
      source.subscribe(() => this.onRows()),
      zone.subscribe(() => this.redraw()),
      onSlots(() => this.redraw()),
    );
    this.first = source.get().first;
    this.setFollowing(true);
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    for (const stop of this.stops) stop();
    this.source.follow(0);
    this.scroller.remove();
  }

  /** Back to the live end. */
  resume(): void {
    this.held = false;
    this.setFollowing(true);
  }
  /** Stand still although the live end is in view: something is being read. */
  hold(): void {
    this.held = true;
    this.setFollowing(false);
  }
  /** What was read is closed: follow again if the live end is in view. */
  release(): void {
    if (!this.held) return;
    this.held = false;
    this.onScroll();
  }
  toOldest(): void {
    this.setFollowing(false);
    this.scroller.scrollTop = 0;
    this.request();
  }

  /** Marks the row with this sequence number. */
  select(seq: number | null): void {
    this.selected = seq;
    this.redraw();
  }

  /** The row `step` below the selected one, brought into view; the newest shown when none is selected. */
  next(step: number): LogRow | null {
    const { first, next } = this.source.get();
    let at = this.positionOfSelected();
    at = at === null ? this.bottomPosition() : at + step;
    while (at >= first && at < next && !this.source.peek(at)?.row) at += step < 0 ? -1 : 1;
    const row = this.source.peek(at)?.row ?? null;
    if (row) this.reveal(at);
    return row;
  }

  private reveal(position: number): void {
    const top = (position - this.source.get().first) * ROW_PX;
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop) this.scroller.scrollTop = top;
    else if (top + ROW_PX > scrollTop + clientHeight) this.scroller.scrollTop = top + ROW_PX - clientHeight;
  }
  private positionOfSelected(): number | null {
    for (const [position, { entry }] of this.pool) if (entry?.row && entry.row.seq === this.selected) return position;
    return null;
  }
  private bottomPosition(): number {
    const { first, next } = this.source.get();
    const { scrollTop, clientHeight } = this.scroller;
    return Math.min(next - 1, first + Math.floor((scrollTop + clientHeight) / ROW_PX) - 1);
  }

  private setFollowing(on: boolean): void {
    if (this.following !== on || this.leftAt === 0) this.leftAt = this.source.get().received;
    this.following = on;
    this.source.follow(on ? this.visibleRows() + OVERSCAN : 0);
    this.request();
    this.tell();
  }
  private visibleRows(): number {
    return Math.ceil((this.scroller.clientHeight || 600) / ROW_PX) + 1;
  }

  private onRows(): void {
    const { first } = this.source.get();
    // Eviction and older pages move every row: the scroll position goes along, so that what is read stands still.
    if (!this.following && first !== this.first) {
      this.sizer.style.height = `${this.height()}px`;
      this.scroller.scrollTop -= (first - this.first) * ROW_PX;
    }
    this.first = first;
    this.request();
    this.tell();
  }
  private onScroll(): void {
    const { scroller } = this;
    const atEnd = scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - ROW_PX / 2;
    if (!this.held && atEnd !== this.following) this.setFollowing(atEnd);
    this.request();
  }
  private onClick(event: MouseEvent): void {
    const entry = this.entryOf(event);
    if (!entry) return;
    if (entry.gap && entry.gap.skipped > 0) {
      const after = this.source.peek(entry.position + 1)?.row;
      if (after) this.hooks.onGap(after);
    } else if (entry.row) this.hooks.onOpen(entry.row);
  }
  private entryOf(event: Event): Entry<LogRow> | undefined {
    const node = (event.target as HTMLElement).closest<HTMLElement>("[data-at]");
    return node ? this.source.peek(Number(node.dataset.at)) : undefined;
  }

  private tell(): void {
    const { received } = this.source.get();
    this.hooks.onState({ following: this.following, fresh: this.following ? 0 : Math.max(0, received - this.leftAt) });
  }
  private redraw(): void {
    for (const row of this.pool.values()) row.drawn = "";
    this.request();
  }
  private request(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }
  private height(): number {
    const { first, next } = this.source.get();
    return Math.min(HEIGHT_MAX, (next - first) * ROW_PX);
  }

  private draw(): void {
    const { first, next, begun } = this.source.get();
    this.sizer.style.height = `${this.height()}px`;
    this.scroller.setAttribute("aria-rowcount", String(next - first));
    if (this.following) this.scroller.scrollTop = this.height();
    const top = first + Math.floor(this.scroller.scrollTop / ROW_PX);
    const from = Math.max(first, top - OVERSCAN);
    const to = Math.min(next, top + this.visibleRows() + OVERSCAN);
    this.source.want(from, to);
    for (const [position, row] of this.pool) {
      if (position >= from && position < to) continue;
      row.node.remove();
      this.pool.delete(position);
    }
    for (let position = from; position < to; position += 1) this.place(position, first);
    const short = next - first < this.visibleRows();
    if (begun && (short || top - first < 20) && this.toldTop !== first) {
      this.toldTop = first;
      this.hooks.onTop();
    }
  }

  private place(position: number, first: number): void {
    const entry = this.source.peek(position);
    let row = this.pool.get(position);
    if (!row) {
      row = { node: document.createElement("div"), entry: undefined, drawn: "" };
      row.node.setAttribute("role", "row");
      row.node.dataset.at = String(position);
      this.pool.set(position, row);
      this.sizer.append(row.node);
    }
    row.node.style.transform = `translateY(${(position - first) * ROW_PX}px)`;
    row.node.setAttribute("aria-rowindex", String(position - first + 1));
    const selected = entry?.row?.seq === this.selected && this.selected !== null;
    const drawn = entry ? `${entry.position} ${selected}` : "";
    if (row.entry === entry && row.drawn === drawn && drawn !== "") return;
    row.entry = entry;
    row.drawn = drawn;
    fill(row.node, entry, selected);
  }
}

function cell(text: string, className: string): HTMLSpanElement {
  const node = document.createElement("span");
  node.setAttribute("role", "gridcell");
  node.className = className;
  node.textContent = text;
  return node;
}

function fill(node: HTMLDivElement, entry: Entry<LogRow> | undefined, selected: boolean): void {
  node.textContent = "";
  node.setAttribute("aria-selected", String(selected));
  if (!entry) {
    node.className = "log-row";
    return;
  }
  if (entry.gap) {
    node.className = "log-row gap-row";
    const words = cell(`${gapWords(entry.gap, "row")}.`, "");
    if (entry.gap.skipped > 0) {
      const load = document.createElement("button");
      load.type = "button";
      load.className = "link";
      load.textContent = "load them";
      words.append(" They are kept: ", load);
    }
    node.append(words);
    return;
  }
  const row = entry.row as LogRow;
  node.className = `log-row ${row.level}${selected ? " on" : ""}`;
  const service = cell("", "log-service");
  const rod = document.createElement("i");
  const slot = slotOf(row.service);
  rod.style.background = slot ? `var(--svc-${((slot - 1) % 12) + 1})` : "var(--chart-2)";
  service.append(rod, row.service);
  const body = cell(oneLine(row.body), "log-body");
  const fields = fieldWords(row.attributes);
  if (fields) {
    const rest = document.createElement("em");
    rest.textContent = ` ${fields}`;
    body.append(rest);
  }
  const bar = document.createElement("i");
  bar.setAttribute("aria-hidden", "true");
  node.append(bar, cell(clockMs(row.at_us, zone.get()), "log-time"), service, cell(row.level, "log-level"), body);
}

/** Fixed height: a message of many lines is told by its first, with a mark; the rest stands in the panel. */
export function oneLine(text: string): string {
  const end = text.indexOf("\n");
  return end < 0 ? text : `${text.slice(0, end).trimEnd()} ⏎`;
}

/** Which stream a line was printed to says nothing a reader of many rows wants; the panel has it. */
const UNSAID = "log.iostream";

/** Fields behind the body, as `key=value`. */
export function fieldWords(attributes: Record<string, unknown>): string {
  let words = "";
  for (const key in attributes) {
    if (key === UNSAID) continue;
    const value = attributes[key];
    const text = typeof value === "string" ? value : JSON.stringify(value);
    words += `${words ? " " : ""}${key}=${oneLine(text)}`;
    if (words.length > 400) break;
  }
  return words;
}
