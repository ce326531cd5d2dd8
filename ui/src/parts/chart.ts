// A chart of values over time on canvas (ui.md §7): sharp lines broken at gaps, round axes, markers, and the cursor all charts
// and the tape share. No framework; Chart.tsx puts it into the page.

import type { Micros } from "../api/types";
import { cursor } from "../time/cursor";
import { timeTicks } from "../time/range";
import { clockAxis } from "./format";
import { ink } from "./ink";
import { niceMax } from "./scale";
import { hatch, Labels, Surface } from "./surface";
import { zone } from "./zone";

export interface ChartSeries {
  name: string;
  /** One entry a bucket; null breaks the line. */
  values: readonly (number | null)[];
  /** Extremes of each bucket, drawn as a thin band so that no peak is lost. */
  min?: readonly (number | null)[];
  max?: readonly (number | null)[];
  /** A colour token: `--chart-1`, `--bar-error`, `--svc-3`. */
  ink: string;
  dashed?: boolean;
  area?: boolean;
  bars?: boolean;
  /** Bars stand on those of the series before. */
  stacked?: boolean;
}
export interface ChartMarker {
  at_us: Micros;
  kind: "change" | "exit";
  text: string;
}
export interface ChartGap {
  from_us: Micros;
  to_us: Micros;
  reason: string;
}
export interface ChartData {
  /** What the axis shows; the data may be shorter or longer. */
  span: { from_us: Micros; to_us: Micros };
  /** Start of the first bucket. */
  from_us: Micros;
  bucket_us: number;
  series: readonly ChartSeries[];
  markers?: readonly ChartMarker[];
  gaps?: readonly ChartGap[];
}
export interface ChartOptions {
  /** Text of a value on the axis. */
  axis: (v: number) => string;
  /** Left edge of the plot; charts in a row share it. */
  left?: number;
  right?: number;
  base1024?: boolean;
  whole?: boolean;
  /** The top of the axis when nothing is higher. */
  least?: number;
  /** What to say when there is nothing at all. */
  empty?: string;
  /** A dragged range. */
  onBrush?: (from_us: Micros, to_us: Micros) => void;
  onClick?: (at_us: Micros) => void;
  /** The bucket under the shared cursor, or null. */
  onCursor?: (index: number | null) => void;
}

const TOP = 6;
const BOTTOM = 18;
const DRAG_MIN_PX = 4;

export class Chart {
  private readonly base: Surface;
  private readonly over: Surface;
  private readonly labels: Labels;
  private readonly tag: HTMLSpanElement;
  private readonly stops: (() => void)[] = [];
  private data: ChartData | null = null;
  private top = 0;
  private rangeKey = "";
  private drag: { from: number; to: number } | null = null;
  private lastIndex: number | null = null;

  constructor(
    private readonly host: HTMLElement,
    private options: ChartOptions,
  ) {
    host.classList.add("chart");
    this.labels = new Labels(host);
    this.base = new Surface(host, (ctx, w, h) => this.drawBase(ctx, w, h));
    this.over = new Surface(host, (ctx, w, h) => this.drawOver(ctx, w, h), "surface over");
    this.tag = document.createElement("span");
    this.tag.className = "chart-tag";
    this.tag.hidden = true;
    host.append(this.tag);
    this.stops.push(cursor.subscribe(() => this.over.request()));
    this.stops.push(zone.subscribe(() => this.base.request()));
    this.listen();
  }

  /** `rangeKey` names the chosen range: within one the axis only grows, a new one starts afresh. */
  set(data: ChartData, rangeKey: string): void {
    this.data = data;
    const peak = peakOf(data.series);
    const nice = niceMax(Math.max(peak * 1.02, this.options.least ?? 0), this.options);
    this.top = rangeKey === this.rangeKey && peak > 0 && this.top > 0 ? Math.max(this.top, nice) : nice;
    if (peak > 0) this.rangeKey = rangeKey;
    this.base.request();
    this.over.request();
  }

  setOptions(options: ChartOptions): void {
    this.options = options;
    this.base.request();
  }

  destroy(): void {
    for (const stop of this.stops) stop();
    this.base.destroy();
    this.over.destroy();
    this.labels.destroy();
    this.tag.remove();
  }

  private get left(): number {
    return this.options.left ?? 44;
  }
  private plot(width: number, height: number): { x: number; w: number; h: number } {
    const right = this.options.right ?? 12;
    return { x: this.left, w: Math.max(1, width - this.left - right), h: height - TOP - BOTTOM };
  }
  private xOf(at: Micros, width: number): number {
    const { x, w } = this.plot(width, 0);
    const { from_us, to_us } = (this.data as ChartData).span;
    return x + ((at - from_us) / (to_us - from_us)) * w;
  }
  private timeAt(px: number): Micros {
    const { x, w } = this.plot(this.base.width, 0);
    const { from_us, to_us } = (this.data as ChartData).span;
    return from_us + Math.min(1, Math.max(0, (px - x) / w)) * (to_us - from_us);
  }
  private indexAt(at: Micros): number | null {
    const { from_us, bucket_us, series } = this.data as ChartData;
    const i = Math.floor((at - from_us) / bucket_us);
    const length = series[0]?.values.length ?? 0;
    return i >= 0 && i < length ? i : null;
  }

  private drawBase(ctx: CanvasRenderingContext2D, width: number, height: number): void {
    const { data } = this;
    if (!data) return;
    const plot = this.plot(width, height);
    this.labels.begin();
    this.drawAxes(ctx, data, plot, height);
    ctx.save();
    ctx.beginPath();
    ctx.rect(plot.x, 0, plot.w, height);
    ctx.clip();
    for (const gap of data.gaps ?? []) {
      const a = this.xOf(gap.from_us, width);
      hatch(ctx, a, TOP, this.xOf(gap.to_us, width) - a, plot.h, ink("--chart-gap"));
    }
    this.drawMarkers(ctx, data, width, plot.h);
    let below: readonly number[] = [];
    for (const series of data.series) {
      if (series.bars) {
        this.drawBars(ctx, data, series, series.stacked ? below : [], width, plot.h);
        below = series.values.map((v, i) => (v ?? 0) + (series.stacked ? (below[i] ?? 0) : 0));
      } else this.drawLines(ctx, data, series, width, plot.h);
    }
    ctx.restore();
    const some = data.series.some((s) => s.values.some((v) => v !== null));
    if (!some)
      this.labels.add(
        this.options.empty ?? "No data in this range",
        "chart-empty",
        plot.x + plot.w / 2,
        TOP + plot.h / 2,
      );
    this.labels.end();
  }

  private drawAxes(
    ctx: CanvasRenderingContext2D,
    data: ChartData,
    plot: { x: number; w: number; h: number },
    height: number,
  ): void {
    ctx.lineWidth = 1;
    for (const v of [0, this.top / 2, this.top]) {
      const y = Math.round(TOP + plot.h - (v / this.top) * plot.h) + 0.5;
      ctx.strokeStyle = ink(v === 0 ? "--line-2" : "--chart-grid");
      ctx.beginPath();
      ctx.moveTo(plot.x, y);
      ctx.lineTo(plot.x + plot.w, y);
      ctx.stroke();
      this.labels.add(this.options.axis(v), "chart-y", plot.x - 6, y);
    }
    const { at, step } = timeTicks(data.span, Math.max(2, Math.floor(plot.w / 72)));
    ctx.strokeStyle = ink("--line-2");
    for (const t of at) {
      const x = Math.round(this.xOf(t, this.base.width)) + 0.5;
      if (x < plot.x + 18 || x > plot.x + plot.w - 18) continue;
      ctx.beginPath();
      ctx.moveTo(x, TOP + plot.h);
      ctx.lineTo(x, TOP + plot.h + 3);
      ctx.stroke();
      this.labels.add(clockAxis(t, step, zone.get()), "chart-x", x, height - BOTTOM + 3);
    }
  }

  private drawMarkers(ctx: CanvasRenderingContext2D, data: ChartData, width: number, h: number): void {
    ctx.save();
    ctx.setLineDash([2, 3]);
    ctx.globalAlpha = 0.75;
    for (const marker of data.markers ?? []) {
      const x = Math.round(this.xOf(marker.at_us, width)) + 0.5;
      ctx.strokeStyle = ink(marker.kind === "exit" ? "--err" : "--chart-cross");
      ctx.beginPath();
      ctx.moveTo(x, TOP);
      ctx.lineTo(x, TOP + h);
      ctx.stroke();
    }
    ctx.restore();
  }

  private drawLines(ctx: CanvasRenderingContext2D, data: ChartData, s: ChartSeries, width: number, h: number): void {
    const yOf = (v: number) => TOP + h - (v / this.top) * h;
    const xOf = (i: number) => this.xOf(data.from_us + (i + 0.5) * data.bucket_us, width);
    for (const [from, to] of runs(s.values)) {
      if (s.area) {
        ctx.fillStyle = ink("--chart-area");
        ctx.beginPath();
        ctx.moveTo(xOf(from), TOP + h);
        for (let i = from; i < to; i += 1) ctx.lineTo(xOf(i), yOf(s.values[i] as number));
        ctx.lineTo(xOf(to - 1), TOP + h);
        ctx.fill();
      }
      ctx.strokeStyle = ink(s.ink);
      ctx.lineWidth = 1.35;
      ctx.lineJoin = "round";
      ctx.setLineDash(s.dashed ? [3, 3] : []);
      ctx.beginPath();
      ctx.moveTo(xOf(from) - (to - from === 1 ? 1 : 0), yOf(s.values[from] as number));
      for (let i = from; i < to; i += 1) ctx.lineTo(xOf(i), yOf(s.values[i] as number));
      if (to - from === 1) ctx.lineTo(xOf(from) + 1, yOf(s.values[from] as number));
      ctx.stroke();
      ctx.setLineDash([]);
      if (s.min && s.max) this.drawExtremes(ctx, s, from, to, xOf, yOf);
    }
  }

  private drawExtremes(
    ctx: CanvasRenderingContext2D,
    s: ChartSeries,
    from: number,
    to: number,
    xOf: (i: number) => number,
    yOf: (v: number) => number,
  ): void {
    ctx.save();
    ctx.globalAlpha = 0.35;
    ctx.lineWidth = 1;
    ctx.beginPath();
    for (let i = from; i < to; i += 1) {
      const low = s.min?.[i];
      const high = s.max?.[i];
      if (low === null || low === undefined || high === null || high === undefined || high === low) continue;
      ctx.moveTo(xOf(i), yOf(low));
      ctx.lineTo(xOf(i), yOf(high));
    }
    ctx.stroke();
    ctx.restore();
  }

  private drawBars(
    ctx: CanvasRenderingContext2D,
    data: ChartData,
    s: ChartSeries,
    below: readonly number[],
    width: number,
    h: number,
  ): void {
    ctx.fillStyle = ink(s.ink);
    s.values.forEach((v, i) => {
      if (!v) return;
      const a = this.xOf(data.from_us + i * data.bucket_us, width);
      const b = this.xOf(data.from_us + (i + 1) * data.bucket_us, width);
      const height = Math.max(1, (v / this.top) * h);
      const floor = ((below[i] ?? 0) / this.top) * h;
      ctx.fillRect(a, TOP + h - floor - height, Math.max(0.75, b - a - 0.8), height);
    });
  }

  private drawOver(ctx: CanvasRenderingContext2D, width: number, height: number): void {
    const at = cursor.get();
    const { data } = this;
    const shown = data && at !== null && at >= data.span.from_us && at <= data.span.to_us;
    const index = shown ? this.indexAt(at) : null;
    if (index !== this.lastIndex) {
      this.lastIndex = index;
      this.options.onCursor?.(index);
    }
    if (data && this.drag) this.drawDrag(ctx, height);
    if (!shown) {
      this.tag.hidden = true;
      return;
    }
    const plot = this.plot(width, height);
    const x = Math.round(this.xOf(at, width)) + 0.5;
    ctx.strokeStyle = ink("--accent");
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(x, TOP);
    ctx.lineTo(x, TOP + plot.h);
    ctx.stroke();
    if (index !== null) this.drawPoints(ctx, data, index, x, plot.h);
    this.tag.textContent = clockAxis(at, 1, zone.get());
    this.tag.style.transform = `translate(${Math.min(width - 56, Math.max(0, x - 28)).toFixed(1)}px, ${TOP + plot.h + 2}px)`;
    this.tag.hidden = false;
  }

  private drawPoints(ctx: CanvasRenderingContext2D, data: ChartData, index: number, x: number, h: number): void {
    for (const s of data.series) {
      const v = s.values[index];
      if (s.bars || v === null || v === undefined) continue;
      ctx.beginPath();
      ctx.arc(x, TOP + h - (v / this.top) * h, 3, 0, Math.PI * 2);
      ctx.fillStyle = ink("--bg-0");
      ctx.fill();
      ctx.strokeStyle = ink(s.ink);
      ctx.lineWidth = 1.5;
      ctx.stroke();
    }
  }

  private drawDrag(ctx: CanvasRenderingContext2D, height: number): void {
    const { from, to } = this.drag as { from: number; to: number };
    ctx.fillStyle = ink("--accent-soft");
    ctx.fillRect(Math.min(from, to), TOP, Math.abs(to - from), height - TOP - BOTTOM);
  }

  private listen(): void {
    const { host } = this;
    const local = (event: PointerEvent) => event.clientX - host.getBoundingClientRect().left;
    const move = (event: PointerEvent) => {
      if (!this.data) return;
      const px = local(event);
      if (this.drag) this.drag.to = px;
      cursor.set(px < this.left - 8 ? null : this.timeAt(px));
      this.over.request();
    };
    const down = (event: PointerEvent) => {
      if (event.button !== 0 || !this.data || local(event) < this.left) return;
      this.drag = { from: local(event), to: local(event) };
      host.setPointerCapture(event.pointerId);
    };
    const up = () => {
      const { drag } = this;
      this.drag = null;
      this.over.request();
      if (!drag || !this.data) return;
      if (Math.abs(drag.to - drag.from) >= DRAG_MIN_PX)
        this.options.onBrush?.(this.timeAt(Math.min(drag.from, drag.to)), this.timeAt(Math.max(drag.from, drag.to)));
      else this.options.onClick?.(this.timeAt(drag.from));
    };
    const leave = () => cursor.set(null);
    const cancel = () => {
      this.drag = null;
      this.over.request();
    };
    const on = <K extends keyof HTMLElementEventMap>(name: K, f: (e: HTMLElementEventMap[K]) => void) => {
      host.addEventListener(name, f);
      this.stops.push(() => host.removeEventListener(name, f));
    };
    on("pointermove", move);
    on("pointerdown", down);
    on("pointerup", up);
    on("pointercancel", cancel);
    on("pointerleave", leave);
  }
}

/** The highest value drawn: extremes count where they are given, stacked bars by their sum. */
export function peakOf(series: readonly ChartSeries[]): number {
  let peak = 0;
  let below: readonly number[] = [];
  for (const s of series) {
    const tops = (s.max ?? s.values).map((v, i) => (v ?? 0) + (s.stacked ? (below[i] ?? 0) : 0));
    for (const v of tops) if (v > peak) peak = v;
    below = s.bars ? tops : [];
  }
  return peak;
}

/** Stretches of known values: `[from, to)`. */
export function runs(values: readonly (number | null)[]): [number, number][] {
  const out: [number, number][] = [];
  let from = -1;
  values.forEach((v, i) => {
    if (v !== null && from < 0) from = i;
    if (v === null && from >= 0) {
      out.push([from, i]);
      from = -1;
    }
  });
  if (from >= 0) out.push([from, values.length]);
  return out;
}
