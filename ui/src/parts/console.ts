// The console of one instance: fixed rows from a ring in the worker, pooled elements, no framework. It follows the live end until
// the reader scrolls up; then what is read does not move, whatever is appended or evicted.

import type { ConsoleLine } from "../api/types";
import type { RowsFeed } from "../live/feed";
import type { Entry } from "../live/ring";
import { consoleSpans } from "./ansi";
import { clockMs, duration, plural } from "./format";
import { zone } from "./zone";

export interface ConsoleState {
  following: boolean;
  /** Lines that came since the reader left the live end. */
  fresh: number;
  lines: number;
}
export type Stamp = "clock" | "delta";

export const LINE_PX = 19;
const OVERSCAN = 12;
/** Wrapped lines have any height, so they are all laid out: this many at most, the newest. */
export const WRAPPED_MAX = 1000;
/** Browsers give up on taller elements. */
const HEIGHT_MAX = 8_000_000;

export class ConsoleView {
  private readonly scroller = document.createElement("div");
  private readonly sizer = document.createElement("div");
  private readonly pool = new Map<
    number,
    { node: HTMLDivElement; entry: Entry<ConsoleLine> | undefined; stamp: string }
  >();
  private readonly stops: (() => void)[] = [];
  private following = true;
  private first = 0;
  private leftAt = 0;
  private stamp: Stamp = "clock";
  private wraps = false;
  private frame = 0;

  constructor(
    host: HTMLElement,
    private readonly feed: RowsFeed<ConsoleLine>,
    private readonly onState: (state: ConsoleState) => void,
  ) {
    this.scroller.className = "console-scroll";
    this.scroller.tabIndex = 0;
    this.scroller.setAttribute("role", "log");
    this.scroller.setAttribute("aria-live", "off");
    this.scroller.setAttribute("aria-label", "Console output");
    this.sizer.className = "console-sizer";
    this.scroller.append(this.sizer);
    host.append(this.scroller);
    this.scroller.addEventListener("scroll", () => this.onScroll(), { passive: true });
    const observer = new ResizeObserver(() => this.request());
    observer.observe(this.scroller);
    this.stops.push(
      () => observer.disconnect(),
      feed.subscribe(() => this.onRows()),
      zone.subscribe(() => this.request()),
    );
    this.first = feed.get().first;
    this.setFollowing(true);
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    for (const stop of this.stops) stop();
    this.feed.follow(0);
    this.scroller.remove();
  }

  setStamp(stamp: Stamp): void {
    this.stamp = stamp;
    this.request();
  }

  /** Long lines go on in the next row instead of beyond the edge. */
  setWrap(on: boolean): void {
    if (on === this.wraps) return;
    this.wraps = on;
    this.sizer.classList.toggle("wrapped", on);
    for (const { node } of this.pool.values()) node.remove();
    this.pool.clear();
    this.setFollowing(this.following);
  }

  /** Back to the live end. */
  resume(): void {
    this.setFollowing(true);
  }

  private setFollowing(on: boolean): void {
    this.following = on;
    this.leftAt = this.feed.get().received;
    const tail = this.wraps ? WRAPPED_MAX : this.visibleRows() + OVERSCAN;
    this.feed.follow(on ? tail : 0);
    this.request();
    this.tell();
  }

  private visibleRows(): number {
    return Math.ceil((this.scroller.clientHeight || 400) / LINE_PX) + 1;
  }

  private onRows(): void {
    const { first } = this.feed.get();
    // Eviction moves every row up by what went: the scroll position goes along, so that what is read stands still.
    if (this.wraps) {
      this.first = first;
      this.request();
      this.tell();
      return;
    }
    if (!this.following && first > this.first) this.scroller.scrollTop -= (first - this.first) * LINE_PX;
    if (!this.following && first < this.first) this.scroller.scrollTop += (this.first - first) * LINE_PX;
    this.first = first;
    this.request();
    this.tell();
  }

  private onScroll(): void {
    const { scroller } = this;
    const atEnd = scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - LINE_PX / 2;
    if (atEnd !== this.following) this.setFollowing(atEnd);
    this.request();
  }

  private tell(): void {
    const { received, next, first } = this.feed.get();
    this.onState({
      following: this.following,
      fresh: this.following ? 0 : received - this.leftAt,
      lines: next - first,
    });
  }

  private request(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  private draw(): void {
    if (this.wraps) {
      this.drawWrapped();
      return;
    }
    const { first, next } = this.feed.get();
    const height = Math.min(HEIGHT_MAX, (next - first) * LINE_PX);
    this.sizer.style.height = `${height}px`;
    if (this.following) this.scroller.scrollTop = height;
    const top = first + Math.floor(this.scroller.scrollTop / LINE_PX);
    const from = Math.max(first, top - OVERSCAN);
    const to = Math.min(next, top + this.visibleRows() + OVERSCAN);
    this.feed.want(from, to);
    for (const [position, row] of this.pool) {
      if (position >= from && position < to) continue;
      row.node.remove();
      this.pool.delete(position);
    }
    for (let position = from; position < to; position += 1) this.place(position, first);
  }

  /** In order and in the flow. While the reader is elsewhere nothing above goes away, so that what is read stands still. */
  private drawWrapped(): void {
    const { first, next } = this.feed.get();
    const newest = Math.max(first, next - WRAPPED_MAX);
    const kept = this.pool.keys().next().value;
    const from = this.following || kept === undefined ? newest : Math.min(kept, newest);
    const to = this.following ? next : Math.max(...this.pool.keys(), newest);
    this.sizer.style.height = "";
    this.feed.want(from, to);
    for (const [position, row] of this.pool) {
      if (position >= from && position < next) continue;
      row.node.remove();
      this.pool.delete(position);
    }
    for (let position = from; position < to; position += 1) this.place(position, first);
    if (this.following) this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  private place(position: number, first: number): void {
    const entry = this.feed.peek(position);
    const stamp = this.stampOf(entry, position);
    let row = this.pool.get(position);
    if (!row) {
      row = { node: document.createElement("div"), entry: undefined, stamp: "" };
      this.pool.set(position, row);
      this.sizer.append(row.node);
      row.node.className = "console-line";
    }
    row.node.style.transform = this.wraps ? "" : `translateY(${(position - first) * LINE_PX}px)`;
    if (row.entry === entry && row.stamp === stamp) return;
    row.entry = entry;
    row.stamp = stamp;
    fill(row.node, entry, stamp);
  }

  private stampOf(entry: Entry<ConsoleLine> | undefined, position: number): string {
    const row = entry?.row;
    if (!row) return "";
    if (this.stamp === "clock") return clockMs(row.at_us, zone.get());
    const before = this.feed.peek(position - 1)?.row;
    return before ? `+${duration(Math.max(0, row.at_us - before.at_us) * 1000)}` : clockMs(row.at_us, zone.get());
  }
}

function span(text: string, className: string): HTMLSpanElement {
  const node = document.createElement("span");
  node.textContent = text;
  if (className) node.className = className;
  return node;
}

function fill(node: HTMLDivElement, entry: Entry<ConsoleLine> | undefined, stamp: string): void {
  node.textContent = "";
  node.title = "";
  if (!entry) {
    node.className = "console-line";
    return;
  }
  if (entry.gap) {
    node.className = "console-line gap-row";
    node.append(span(gapWords(entry.gap), ""));
    return;
  }
  const row = entry.row as ConsoleLine;
  node.className = `console-line ${row.kind}`;
  node.append(span(stamp, "console-time"));
  if (row.kind === "lifecycle") {
    node.append(span(row.text, "console-life"));
    return;
  }
  const text = document.createElement("span");
  text.className = "console-text";
  for (const part of consoleSpans(row.text))
    text.append(part.style ? span(part.text, part.style) : document.createTextNode(part.text));
  node.append(text);
}

/** What is missing between two rows, with its exact count. */
export function gapWords(gap: { skipped: number; evicted: number; restarted: boolean }, what = "line"): string {
  if (gap.restarted) return "reactor was restarted here";
  const parts: string[] = [];
  if (gap.skipped > 0) parts.push(`${plural(gap.skipped, what)} passed while this was held or busy`);
  if (gap.evicted > 0) parts.push(`${plural(gap.evicted, what)} evicted before being sent`);
  return parts.join(", ");
}
