// Duration over time, one mark a trace: a dot, or a red triangle when it failed. Drag picks a time and duration range, a click the
// nearest trace. No framework.

import type { Micros, Nanos, ScatterPoint } from "../api/types";
import { cursor } from "../time/cursor";
import { timeTicks } from "../time/range";
import { axisDuration } from "./axis";
import type { ChartMarker } from "./chart";
import { clockAxis } from "./format";
import { ink } from "./ink";
import { Labels, Surface } from "./surface";
import { zone } from "./zone";

export interface ScatterData {
  span: { from_us: Micros; to_us: Micros };
  points: readonly ScatterPoint[];
  markers: readonly ChartMarker[];
  selected: string | null;
}
export interface ScatterHooks {
  onPick: (traceId: string) => void;
  onBox: (box: { from_us: Micros; to_us: Micros; low_ns: Nanos; high_ns: Nanos }) => void;
}

const LEFT = 56;
const RIGHT = 12;
const TOP = 10;
const BOTTOM = 18;
const DRAG_MIN_PX = 4;
const PICK_PX = 10;

/** Durations below it are all told as "< 1 µs": the axis has no room for what cannot be told apart. */
const SHORTEST_NS = 1_000;

/** Whole decades around the durations, at least two of them: the axis does not dance with every new point. */
export function decades(points: readonly { duration_ns: Nanos }[]): { low: number; high: number } {
  let least = Number.POSITIVE_INFINITY;
  let most = 0;
  for (const { duration_ns } of points) {
    const d = Math.max(SHORTEST_NS, duration_ns);
    if (d < least) least = d;
    if (d > most) most = d;
  }
  if (most === 0) return { low: 6, high: 9 };
  const low = Math.floor(Math.log10(least));
  const high = Math.max(low + 2, Math.ceil(Math.log10(most)));
  return { low, high };
}

export class ScatterPlot {
  private readonly base: Surface;
  private readonly over: Surface;
  private readonly labels: Labels;
  private readonly stops: (() => void)[] = [];
  private data: ScatterData | null = null;
  private axis = { low: 6, high: 9 };
  private drag: { x0: number; y0: number; x1: number; y1: number } | null = null;

  constructor(
    private readonly host: HTMLElement,
    private readonly hooks: ScatterHooks,
  ) {
    host.classList.add("chart");
    this.labels = new Labels(host);
    this.base = new Surface(host, (ctx, w, h) => this.drawBase(ctx, w, h));
    this.over = new Surface(host, (ctx, w, h) => this.drawOver(ctx, w, h), "surface over");
    this.stops.push(
      cursor.subscribe(() => this.over.request()),
      zone.subscribe(() => this.base.request()),
    );
    this.listen();
  }

  set(data: ScatterData): void {
    this.data = data;
    this.axis = decades(data.points);
    this.base.request();
    this.over.request();
  }
  destroy(): void {
    for (const stop of this.stops) stop();
    this.base.destroy();
    this.over.destroy();
    this.labels.destroy();
  }

  private xOf(at: Micros): number {
    const { from_us, to_us } = (this.data as ScatterData).span;
    return LEFT + ((at - from_us) / (to_us - from_us)) * (this.base.width - LEFT - RIGHT);
  }
  private timeAt(x: number): Micros {
    const { from_us, to_us } = (this.data as ScatterData).span;
    const k = Math.min(1, Math.max(0, (x - LEFT) / (this.base.width - LEFT - RIGHT)));
    return from_us + k * (to_us - from_us);
  }
  private yOf(ns: Nanos): number {
    const { low, high } = this.axis;
    const h = this.base.height - TOP - BOTTOM;
    return TOP + h - ((Math.log10(Math.max(SHORTEST_NS, ns)) - low) / (high - low)) * h;
  }
  private durationAt(y: number): Nanos {
    const { low, high } = this.axis;
    const h = this.base.height - TOP - BOTTOM;
    const k = Math.min(1, Math.max(0, (TOP + h - y) / h));
    return Math.round(10 ** (low + k * (high - low)));
  }

  private drawBase(ctx: CanvasRenderingContext2D, width: number, height: number): void {
    const { data } = this;
    if (!data) return;
    this.labels.begin();
    this.drawAxes(ctx, data, width, height);
    for (const marker of data.markers) {
      const x = Math.round(this.xOf(marker.at_us)) + 0.5;
      if (x < LEFT || x > width - RIGHT) continue;
      ctx.strokeStyle = ink(marker.kind === "exit" ? "--err" : "--chart-cross");
      ctx.setLineDash([2, 3]);
      ctx.beginPath();
      ctx.moveTo(x, 0);
      ctx.lineTo(x, height - BOTTOM);
      ctx.stroke();
      ctx.setLineDash([]);
    }
    for (const failed of [false, true])
      for (const point of data.points) if (point.failed === failed) this.drawPoint(ctx, point);
    if (data.points.length === 0)
      this.labels.add("No traces in this range", "chart-empty", LEFT + (width - LEFT - RIGHT) / 2, height / 2 - 6);
    this.labels.end();
  }

  private drawAxes(ctx: CanvasRenderingContext2D, data: ScatterData, width: number, height: number): void {
    const { low, high } = this.axis;
    const step = high - low > 4 ? 2 : 1;
    ctx.lineWidth = 1;
    for (let power = low; power <= high; power += step) {
      const y = Math.round(this.yOf(10 ** power)) + 0.5;
      ctx.strokeStyle = ink(power === low ? "--line-2" : "--chart-grid");
      ctx.beginPath();
      ctx.moveTo(LEFT, y);
      ctx.lineTo(width - RIGHT, y);
      ctx.stroke();
      this.labels.add(axisDuration(10 ** power), "chart-y", LEFT - 6, y);
    }
    const { at, step: seconds } = timeTicks(data.span, Math.max(2, Math.floor((width - LEFT - RIGHT) / 90)));
    for (const t of at) {
      const x = this.xOf(t);
      if (x > LEFT + 18 && x < width - RIGHT - 18)
        this.labels.add(clockAxis(t, seconds, zone.get()), "chart-x", x, height - BOTTOM + 3);
    }
  }

  private drawPoint(ctx: CanvasRenderingContext2D, point: ScatterPoint): void {
    const x = this.xOf(point.started_us);
    const y = this.yOf(point.duration_ns);
    if (x < LEFT - 2 || x > this.base.width - RIGHT + 2) return;
    ctx.beginPath();
    if (point.failed) {
      ctx.fillStyle = ink("--err");
      ctx.moveTo(x, y - 3.4);
      ctx.lineTo(x + 3.2, y + 2.2);
      ctx.lineTo(x - 3.2, y + 2.2);
      ctx.fill();
      return;
    }
    ctx.globalAlpha = 0.62;
    ctx.arc(x, y, 1.8, 0, Math.PI * 2);
    if (point.open) {
      ctx.strokeStyle = ink("--warn-fill");
      ctx.stroke();
    } else {
      ctx.fillStyle = ink("--chart-2");
      ctx.fill();
    }
    ctx.globalAlpha = 1;
  }

  private drawOver(ctx: CanvasRenderingContext2D, _width: number, height: number): void {
    const { data, drag } = this;
    if (!data) return;
    const chosen = data.points.find((p) => p.trace_id === data.selected);
    if (chosen) {
      ctx.strokeStyle = ink("--accent");
      ctx.lineWidth = 1.5;
      ctx.beginPath();
      ctx.arc(this.xOf(chosen.started_us), this.yOf(chosen.duration_ns), 6, 0, Math.PI * 2);
      ctx.stroke();
    }
    if (drag) {
      ctx.fillStyle = ink("--accent-soft");
      ctx.fillRect(drag.x0, drag.y0, drag.x1 - drag.x0, drag.y1 - drag.y0);
    }
    const at = cursor.get();
    if (at === null || at < data.span.from_us || at > data.span.to_us) return;
    ctx.strokeStyle = ink("--accent");
    ctx.lineWidth = 1;
    ctx.beginPath();
    const x = Math.round(this.xOf(at)) + 0.5;
    ctx.moveTo(x, TOP);
    ctx.lineTo(x, height - BOTTOM);
    ctx.stroke();
  }

  private nearest(x: number, y: number): ScatterPoint | null {
    let best: ScatterPoint | null = null;
    let least = PICK_PX;
    for (const point of this.data?.points ?? []) {
      const distance = Math.hypot(this.xOf(point.started_us) - x, this.yOf(point.duration_ns) - y);
      if (distance < least) {
        least = distance;
        best = point;
      }
    }
    return best;
  }

  private finish(): void {
    const { drag, hooks } = this;
    this.drag = null;
    this.over.request();
    if (!drag || !this.data) return;
    const [x0, x1] = [Math.min(drag.x0, drag.x1), Math.max(drag.x0, drag.x1)];
    const [y0, y1] = [Math.min(drag.y0, drag.y1), Math.max(drag.y0, drag.y1)];
    if (x1 - x0 < DRAG_MIN_PX && y1 - y0 < DRAG_MIN_PX) {
      const found = this.nearest(drag.x0, drag.y0);
      if (found) hooks.onPick(found.trace_id);
      return;
    }
    hooks.onBox({
      from_us: this.timeAt(x0),
      to_us: this.timeAt(x1),
      low_ns: this.durationAt(y1),
      high_ns: this.durationAt(y0),
    });
  }

  private listen(): void {
    const { host } = this;
    const place = (event: PointerEvent) => {
      const box = host.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    const on = <K extends keyof HTMLElementEventMap>(name: K, f: (e: HTMLElementEventMap[K]) => void) => {
      host.addEventListener(name, f);
      this.stops.push(() => host.removeEventListener(name, f));
    };
    on("pointerdown", (event) => {
      const { x, y } = place(event);
      if (event.button !== 0 || !this.data || x < LEFT) return;
      this.drag = { x0: x, y0: y, x1: x, y1: y };
      host.setPointerCapture(event.pointerId);
    });
    on("pointermove", (event) => {
      if (!this.data) return;
      const { x, y } = place(event);
      if (this.drag) Object.assign(this.drag, { x1: x, y1: y });
      cursor.set(x < LEFT - 8 ? null : this.timeAt(x));
      this.over.request();
    });
    on("pointerup", () => this.finish());
    on("pointercancel", () => {
      this.drag = null;
      this.over.request();
    });
    on("pointerleave", () => cursor.set(null));
  }
}
