// The waterfall (ui.md §8): span names as pooled rows at the left, time on a canvas at the right, one scroll for both. Draws only
// what is in view, so a trace of 20,000 spans scrolls like one of 20. No framework.

import { onSlots, slotOf } from "../../live/slots";
import { duration, durationShort } from "../../parts/format";
import { font, ink, slotInk } from "../../parts/ink";
import { Surface } from "../../parts/surface";
import { isInternal, type Node, type Scale, type Segments, type TraceLine } from "./layout";

export interface WaterfallData {
  lines: readonly TraceLine[];
  critical: Segments;
  total: number;
  /** Span id of the selected row. */
  selected: string | null;
  find: string;
}
export interface WaterfallHooks {
  onSelect: (spanId: string) => void;
  onFold: (spanId: string) => void;
  onScale: (scale: Scale) => void;
  /** The label of the folded stretch was clicked. */
  onUnfold: () => void;
}

export const ROW = 22;
export const AXIS = 26;
const BAR_TOP = 5;
const BAR = 12;
const OVERSCAN = 8;
const MINIMAP = 32;
const MINIMAP_FROM = 500;
const LEFT_KEY = "reactor.trace.left";

export class Waterfall {
  readonly scroller = document.createElement("div");
  private readonly names = document.createElement("div");
  private readonly pane = document.createElement("div");
  private readonly grip = document.createElement("div");
  private readonly surface: Surface;
  private readonly pool = new Map<number, { node: HTMLDivElement; drawn: string }>();
  private readonly stops: (() => void)[] = [];
  private data: WaterfallData | null = null;
  private scale: Scale | null = null;
  private drag: { x: number; y: number; scale: Scale; moved: boolean } | null = null;
  private hover = -1;
  private left = Math.min(600, Math.max(120, Number(localStorage.getItem(LEFT_KEY)) || 308));

  constructor(
    private readonly host: HTMLElement,
    private readonly hooks: WaterfallHooks,
  ) {
    host.classList.add("waterfall");
    if (host.clientWidth < 720) this.left = Math.min(this.left, Math.round(host.clientWidth * 0.48));
    const { scroller, names, pane, grip } = this;
    scroller.className = "waterfall-scroll";
    scroller.tabIndex = 0;
    scroller.setAttribute("role", "treegrid");
    scroller.setAttribute("aria-label", "Spans");
    names.className = "waterfall-names";
    names.setAttribute("role", "rowgroup");
    pane.className = "waterfall-pane";
    grip.className = "waterfall-grip";
    scroller.append(names);
    host.append(scroller, pane, grip);
    this.surface = new Surface(pane, (ctx, w, h) => this.draw(ctx, w, h));
    scroller.addEventListener("scroll", () => this.request(), { passive: true });
    const observer = new ResizeObserver(() => this.request());
    observer.observe(host);
    this.stops.push(
      () => observer.disconnect(),
      onSlots(() => this.redraw()),
    );
    this.setLeft(this.left);
    this.listen();
  }

  destroy(): void {
    for (const stop of this.stops) stop();
    this.surface.destroy();
    this.scroller.remove();
    this.pane.remove();
    this.grip.remove();
  }

  set(data: WaterfallData): void {
    const first = this.data === null;
    this.data = data;
    this.redraw();
    if (first && data.selected) this.reveal(data.selected);
  }
  setScale(scale: Scale): void {
    this.scale = scale;
    this.request();
  }
  reveal(spanId: string): void {
    const at = this.data?.lines.findIndex((l) => l.kind === "span" && l.node.span.span_id === spanId) ?? -1;
    if (at < 0) return;
    const top = at * ROW;
    const { scrollTop } = this.scroller;
    const height = this.bodyHeight();
    if (top < scrollTop) this.scroller.scrollTop = top;
    else if (top + ROW > scrollTop + height) this.scroller.scrollTop = top + ROW - height;
    this.request();
  }
  /** The span `step` rows away from the selected one. */
  neighbour(step: number): string | null {
    const lines = this.data?.lines ?? [];
    const here = lines.findIndex((l) => l.kind === "span" && l.node.span.span_id === this.data?.selected);
    for (
      let at = here < 0 ? (step > 0 ? 0 : lines.length - 1) : here + step;
      at >= 0 && at < lines.length;
      at += step
    ) {
      const line = lines[at] as TraceLine;
      if (line.kind === "span") return line.node.span.span_id;
    }
    return null;
  }

  private get top(): number {
    return AXIS + ((this.data?.lines.length ?? 0) > MINIMAP_FROM ? MINIMAP : 0);
  }
  private bodyHeight(): number {
    return this.host.clientHeight - this.top;
  }
  private setLeft(px: number): void {
    this.left = Math.round(Math.min(Math.max(120, px), Math.max(160, this.host.clientWidth - 160)));
    this.host.style.setProperty("--left", `${this.left}px`);
    this.request();
  }
  private redraw(): void {
    for (const row of this.pool.values()) row.drawn = "";
    this.request();
  }
  private request(): void {
    this.surface.request();
  }

  private draw(ctx: CanvasRenderingContext2D, width: number, height: number): void {
    const { data, scale } = this;
    if (!data || !scale) return;
    this.host.style.setProperty("--top", `${this.top}px`);
    this.names.style.height = `${data.lines.length * ROW}px`;
    this.scroller.setAttribute("aria-rowcount", String(data.lines.length));
    const scroll = this.scroller.scrollTop;
    const from = Math.max(0, Math.floor(scroll / ROW) - OVERSCAN);
    const to = Math.min(data.lines.length, Math.ceil((scroll + height) / ROW) + OVERSCAN);
    this.placeNames(data, from, to);
    this.drawAxis(ctx, scale, width, height);
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, this.top, width, height - this.top);
    ctx.clip();
    for (let i = from; i < to; i += 1) {
      const y = this.top + i * ROW - scroll;
      this.drawLine(ctx, data, data.lines[i] as TraceLine, scale, width, y, i);
    }
    ctx.restore();
    if (this.top > AXIS) this.drawMinimap(ctx, data, scale, width, height, scroll);
  }

  private drawAxis(ctx: CanvasRenderingContext2D, scale: Scale, width: number, height: number): void {
    const ticks = scale.ticks(Math.min(0.5, 84 / Math.max(1, width)));
    const step = ticks.length > 1 ? Math.min(...ticks.slice(1).map((t, i) => t - (ticks[i] as number))) : 0;
    ctx.font = font(11);
    ctx.textBaseline = "middle";
    ctx.strokeStyle = ink("--line-1");
    ctx.lineWidth = 1;
    for (const tick of ticks) {
      const x = Math.round(scale.x(tick) * width) + 0.5;
      ctx.beginPath();
      ctx.moveTo(x, AXIS);
      ctx.lineTo(x, height);
      ctx.stroke();
      ctx.fillStyle = ink("--text-3");
      ctx.fillText(tickLabel(tick, step), x + 5, AXIS / 2);
    }
    if (scale.fold) {
      const a = scale.x(scale.fold.from) * width;
      const b = scale.x(scale.fold.to) * width;
      ctx.fillStyle = ink("--bg-1");
      ctx.fillRect(a, 0, b - a, AXIS);
      ctx.strokeStyle = ink("--line-2");
      ctx.strokeRect(Math.round(a) + 0.5, -0.5, Math.round(b - a), AXIS);
      ctx.fillStyle = ink("--text-2");
      ctx.textAlign = "center";
      ctx.fillText(duration(scale.fold.to - scale.fold.from), (a + b) / 2, AXIS / 2);
      ctx.textAlign = "left";
    }
    ctx.strokeStyle = ink("--line-1");
    ctx.beginPath();
    ctx.moveTo(0, AXIS - 0.5);
    ctx.lineTo(width, AXIS - 0.5);
    ctx.stroke();
  }

  private drawLine(
    ctx: CanvasRenderingContext2D,
    data: WaterfallData,
    line: TraceLine,
    scale: Scale,
    width: number,
    y: number,
    index: number,
  ): void {
    if (line.kind !== "missing" && line.kind === "span" && line.node.span.span_id === data.selected) {
      ctx.fillStyle = ink("--row-selected");
      ctx.fillRect(0, y, width, ROW);
    } else if (index === this.hover) {
      ctx.fillStyle = ink("--row-hover");
      ctx.fillRect(0, y, width, ROW);
    }
    if (line.kind === "log") this.drawLog(ctx, line, scale, width, y);
    else if (line.kind === "span") this.drawSpan(ctx, data, line.node, scale, width, y);
  }

  private drawLog(
    ctx: CanvasRenderingContext2D,
    line: TraceLine & { kind: "log" },
    scale: Scale,
    width: number,
    y: number,
  ): void {
    const x = Math.round(scale.x(line.at_ns) * width);
    if (x < -2 || x > width + 2) return;
    const severe = line.log.severity >= 13;
    ctx.fillStyle = ink(`--sev-${line.log.level}`);
    ctx.fillRect(x, y + 4, 2, 14);
    ctx.font = font(11, "mono");
    ctx.textBaseline = "middle";
    ctx.fillStyle = severe ? ink(`--sev-${line.log.level}`) : ink("--text-2");
    const text = line.log.body.split("\n", 1)[0] as string;
    const size = ctx.measureText(text).width;
    const right = x + 10 + size > width && x - 10 - size > 0;
    ctx.fillText(text, right ? x - 8 - size : x + 10, y + ROW / 2 + 0.5);
  }

  private drawSpan(
    ctx: CanvasRenderingContext2D,
    data: WaterfallData,
    node: Node,
    scale: Scale,
    width: number,
    y: number,
  ): void {
    const { span } = node;
    const x0 = scale.x(span.start_ns) * width;
    const x1 = Math.max(x0 + 3, scale.x(span.start_ns + span.duration_ns) * width);
    const a = Math.max(-20, x0);
    const b = Math.min(width + 20, x1);
    if (b > -10 && a < width + 10) this.drawBar(ctx, span, a, b, y, data.total);
    for (const [from, to] of data.critical.get(span.span_id) ?? []) {
      const ca = Math.max(0, scale.x(from) * width);
      const cb = Math.min(width, Math.max(ca + 2, scale.x(to) * width));
      if (cb <= ca) continue;
      ctx.fillStyle = ink("--text-1");
      ctx.fillRect(ca, y + 19, cb - ca, 2);
    }
    this.drawLabel(ctx, node, x0, x1, y, width);
  }

  private drawBar(
    ctx: CanvasRenderingContext2D,
    span: Node["span"],
    a: number,
    b: number,
    y: number,
    total: number,
  ): void {
    if (span.wait || span.open) {
      const loud = span.open || span.duration_ns >= 1e9 || span.duration_ns > total * 0.6;
      ctx.fillStyle = ink(loud ? "--warn-fill" : "--chart-2");
      const period = 7;
      for (let x = a; x < b; x += period) ctx.fillRect(x, y + BAR_TOP, Math.min(4, b - x), BAR);
      return;
    }
    ctx.beginPath();
    if (isInternal(span)) {
      ctx.roundRect(a + 0.75, y + BAR_TOP + 0.75, Math.max(1.5, b - a - 1.5), BAR - 1.5, 2);
      ctx.fillStyle = ink("--bg-0");
      ctx.fill();
      ctx.strokeStyle = ink("--chart-2");
      ctx.lineWidth = 1.5;
      ctx.stroke();
      return;
    }
    ctx.roundRect(a, y + BAR_TOP, b - a, BAR, 2);
    ctx.fillStyle = slotInk(slotOf(span.service));
    ctx.fill();
  }

  private drawLabel(ctx: CanvasRenderingContext2D, node: Node, x0: number, x1: number, y: number, width: number): void {
    const { span } = node;
    const text = span.open ? `open ${durationShort(span.duration_ns)}` : duration(span.duration_ns);
    ctx.font = font(11);
    ctx.textBaseline = "middle";
    const failed = span.status === "error";
    const size = ctx.measureText(text).width + (failed ? 14 : 0);
    let x = x1 + 6;
    if (x + size > width - 4) x = x0 - 6 - size;
    if (x < 2 || x > width) return;
    if (failed) {
      ctx.fillStyle = ink("--err");
      ctx.beginPath();
      ctx.moveTo(x + 4.5, y + 7);
      ctx.lineTo(x + 9, y + 15);
      ctx.lineTo(x, y + 15);
      ctx.fill();
      x += 14;
    }
    ctx.fillStyle = ink(span.open ? "--warn" : "--text-3");
    ctx.fillText(text, x, y + ROW / 2 + 0.5);
  }

  private drawMinimap(
    ctx: CanvasRenderingContext2D,
    data: WaterfallData,
    scale: Scale,
    width: number,
    height: number,
    scroll: number,
  ): void {
    const rows = data.lines.length;
    const whole = Math.max(1, data.total);
    ctx.fillStyle = ink("--bg-1");
    ctx.fillRect(0, AXIS, width, MINIMAP);
    const step = Math.max(1, Math.floor(rows / 4000));
    for (let i = 0; i < rows; i += step) {
      const line = data.lines[i] as TraceLine;
      if (line.kind !== "span") continue;
      const { span } = line.node;
      ctx.fillStyle =
        span.status === "error"
          ? ink("--err-fill")
          : isInternal(span)
            ? ink("--line-3")
            : slotInk(slotOf(span.service));
      const x = (span.start_ns / whole) * width;
      ctx.fillRect(x, AXIS + 2 + (i / rows) * (MINIMAP - 4), Math.max(1, (span.duration_ns / whole) * width), 1);
    }
    ctx.strokeStyle = ink("--accent-line");
    const a = (Math.max(0, scale.at(0)) / whole) * width;
    const b = (scale.at(1) / whole) * width;
    const y = AXIS + (scroll / (rows * ROW)) * MINIMAP;
    const h = Math.max(3, ((height - this.top) / (rows * ROW)) * MINIMAP);
    ctx.strokeRect(a + 0.5, y + 0.5, Math.max(2, b - a - 1), Math.min(h, MINIMAP - 1));
  }

  private placeNames(data: WaterfallData, from: number, to: number): void {
    for (const [i, row] of this.pool) {
      if (i >= from && i < to) continue;
      row.node.remove();
      this.pool.delete(i);
    }
    for (let i = from; i < to; i += 1) {
      const line = data.lines[i] as TraceLine;
      let row = this.pool.get(i);
      if (!row) {
        row = { node: document.createElement("div"), drawn: "" };
        row.node.dataset.at = String(i);
        row.node.setAttribute("role", "row");
        row.node.style.transform = `translateY(${i * ROW}px)`;
        this.pool.set(i, row);
        this.names.append(row.node);
      }
      const on = line.kind === "span" && line.node.span.span_id === data.selected;
      const drawn = `${keyOf(line)} ${on} ${data.find} ${line.kind === "span" && line.folded} ${i === this.hover}`;
      if (row.drawn === drawn) continue;
      row.drawn = drawn;
      fillName(row.node, line, on, i === this.hover, data.find, i);
    }
  }

  private listen(): void {
    const { scroller, pane, grip, hooks } = this;
    const line = (event: Event): TraceLine | null => {
      const node = (event.target as HTMLElement).closest<HTMLElement>("[data-at]");
      return node ? (this.data?.lines[Number(node.dataset.at)] ?? null) : null;
    };
    scroller.addEventListener("click", (event) => {
      const found = line(event);
      if (!found || found.kind === "missing") return;
      if ((event.target as HTMLElement).closest(".fold")) hooks.onFold(found.node.span.span_id);
      else hooks.onSelect(found.node.span.span_id);
    });
    pane.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    pane.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !this.scale) return;
      pane.setPointerCapture(event.pointerId);
      this.drag = { x: event.clientX, y: event.clientY, scale: this.scale, moved: false };
    });
    pane.addEventListener("pointermove", (event) => this.onMove(event));
    pane.addEventListener("pointerup", (event) => this.onUp(event));
    pane.addEventListener("pointerleave", () => this.setHover(-1));
    pane.addEventListener("dblclick", () => {
      if (this.scale) hooks.onScale(this.scale.zoom(0.5, Number.POSITIVE_INFINITY));
    });
    scroller.addEventListener("pointermove", (event) => {
      const node = (event.target as HTMLElement).closest<HTMLElement>("[data-at]");
      this.setHover(node ? Number(node.dataset.at) : -1);
    });
    scroller.addEventListener("pointerleave", () => this.setHover(-1));
    grip.addEventListener("pointerdown", (event) => grip.setPointerCapture(event.pointerId));
    grip.addEventListener("pointermove", (event) => {
      if (!grip.hasPointerCapture(event.pointerId)) return;
      this.setLeft(event.clientX - this.host.getBoundingClientRect().left);
      localStorage.setItem(LEFT_KEY, String(this.left));
    });
  }

  private onWheel(event: WheelEvent): void {
    const { scale } = this;
    if (!scale) return;
    event.preventDefault();
    const box = this.pane.getBoundingClientRect();
    if (event.ctrlKey || event.metaKey || event.altKey)
      this.hooks.onScale(scale.zoom((event.clientX - box.left) / box.width, event.deltaY > 0 ? 1.25 : 0.8));
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey)
      this.hooks.onScale(scale.pan((event.deltaX || event.deltaY) / box.width));
    else if (this.scroller.scrollHeight > this.scroller.clientHeight) this.scroller.scrollTop += event.deltaY;
    else this.hooks.onScale(scale.zoom((event.clientX - box.left) / box.width, event.deltaY > 0 ? 1.25 : 0.8));
  }
  private onMove(event: PointerEvent): void {
    const box = this.pane.getBoundingClientRect();
    if (this.drag && Math.abs(event.clientX - this.drag.x) > 3) this.drag.moved = true;
    if (this.drag?.moved) this.hooks.onScale(this.drag.scale.pan((this.drag.x - event.clientX) / box.width));
    else this.setHover(this.lineAt(event.clientY - box.top));
  }
  private onUp(event: PointerEvent): void {
    const { drag, data, scale } = this;
    this.drag = null;
    if (!drag || drag.moved || !data || !scale) return;
    const box = this.pane.getBoundingClientRect();
    const y = event.clientY - box.top;
    if (y < AXIS) {
      const x = (event.clientX - box.left) / box.width;
      if (scale.fold && x >= scale.x(scale.fold.from) && x <= scale.x(scale.fold.to)) this.hooks.onUnfold();
      return;
    }
    if (y < this.top) {
      this.scroller.scrollTop = ((y - AXIS) / MINIMAP) * data.lines.length * ROW - this.bodyHeight() / 2;
      return;
    }
    const line = data.lines[this.lineAt(y)];
    if (line && line.kind !== "missing") this.hooks.onSelect(line.node.span.span_id);
  }
  private lineAt(y: number): number {
    if (y < this.top) return -1;
    const at = Math.floor((y - this.top + this.scroller.scrollTop) / ROW);
    return at < (this.data?.lines.length ?? 0) ? at : -1;
  }
  private setHover(at: number): void {
    if (at === this.hover) return;
    this.hover = at;
    this.request();
  }
}

function tickLabel(tick: number, step: number): string {
  if (tick === 0) return "0";
  const unit = tick >= 1e9 || step >= 1e9 ? 1e9 : tick >= 1e6 || step >= 1e6 ? 1e6 : tick >= 1e3 ? 1e3 : 1;
  const name = { 1e9: "s", 1e6: "ms", 1e3: "µs", 1: "ns" }[unit] as string;
  const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(Math.max(1e-6, step / unit)))));
  return `${Number((tick / unit).toFixed(digits))} ${name}`;
}

const keyOf = (line: TraceLine): string =>
  line.kind === "span" ? line.node.span.span_id : line.kind === "log" ? `log ${line.log.seq}` : `missing ${line.id}`;

function text(words: string, className: string): HTMLSpanElement {
  const node = document.createElement("span");
  node.className = className;
  node.textContent = words;
  return node;
}

function fillName(node: HTMLDivElement, line: TraceLine, on: boolean, hover: boolean, find: string, i: number): void {
  node.textContent = "";
  node.className = `wf-name${on ? " on" : ""}${hover ? " hover" : ""}`;
  node.setAttribute("aria-rowindex", String(i + 1));
  if (line.kind === "missing") {
    node.classList.add("missing");
    node.append(text("parent not received", ""), text(line.id.slice(0, 7), "mono-11"));
    return;
  }
  const depth = line.kind === "log" ? line.depth : line.node.depth;
  node.setAttribute("aria-level", String(depth + 1));
  node.setAttribute("aria-selected", String(on));
  node.style.setProperty("--depth", String(Math.min(depth, 24)));
  const cell = text("", "wf-cell");
  cell.setAttribute("role", "gridcell");
  node.append(cell);
  if (line.kind === "log") {
    cell.append(text(line.log.level, `wf-level ${line.log.level}`), text("log", "mono-11 meta"));
    return;
  }
  const { span, children, logs } = line.node;
  const kids = children.length + logs.length;
  const fold = document.createElement("button");
  fold.type = "button";
  fold.className = `fold${line.folded ? " closed" : ""}`;
  fold.tabIndex = -1;
  fold.hidden = kids === 0;
  fold.setAttribute("aria-label", line.folded ? `Unfold ${span.name}` : `Fold ${span.name}`);
  if (kids > 0) node.setAttribute("aria-expanded", String(!line.folded));
  cell.append(fold);
  const internal = isInternal(span);
  if (!internal) {
    const rod = document.createElement("i");
    const slot = slotOf(span.service);
    rod.style.background = slot ? `var(--svc-${((slot - 1) % 12) + 1})` : "var(--chart-2)";
    cell.append(rod, text(span.service, "wf-service"));
  }
  const long = span.wait && span.duration_ns >= 1e9;
  const name = text(span.name, internal ? `wf-own${long ? " warn" : ""}` : "wf-op");
  if (span.inferred) name.title = "The parent was inferred: the caller sent no trace context";
  cell.append(name);
  cell.title = `${span.service} ${span.name}`;
  cell.setAttribute(
    "aria-label",
    `${span.service} ${span.name}, ${duration(span.duration_ns)}${span.status === "error" ? ", failed" : ""}`,
  );
  if (span.inferred) node.classList.add("inferred");
  if (line.folded && kids > 0) cell.append(text(String(kids), "wf-count"));
  if (find && `${span.service} ${span.name}`.toLowerCase().includes(find)) node.classList.add("found");
}
