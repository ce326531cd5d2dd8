// The tape: the silhouette of requests with the failed share at its foot, markers, gaps, the brush. The only range control of the
// page. Canvas and pointer handling, no framework; frame/Tape.tsx feeds it.

import type { Micros, Tape as TapeData } from "../api/types";
import { cursor } from "../time/cursor";
import { timeTicks } from "../time/range";
import { clockAxis } from "./format";
import { ink } from "./ink";
import { hatch, Labels, Surface } from "./surface";
import { zone } from "./zone";

export interface TapeInput {
  window: { from_us: Micros; to_us: Micros };
  brush: { from_us: Micros; to_us: Micros } | null;
  data: TapeData | null;
}
export interface TapeActions {
  onBrush: (a: Micros, b: Micros) => void;
  onReset: () => void;
  /** Factor above one shows more. */
  onZoom: (at: Micros, factor: number) => void;
  onOpen: (href: string) => void;
  /** A marker or gap under the pointer, or null. */
  onHint: (text: string | null, x: number) => void;
}

const TICKS_TOP = 2;
const BARS_TOP = 13;
const DRAG_MIN_PX = 4;
const HANDLE_PX = 6;
const MARKER_PX = 5;

type Drag = { kind: "new" | "left" | "right"; a: number; b: number };

export class Tape {
  private readonly base: Surface;
  private readonly over: Surface;
  private readonly labels: Labels;
  private readonly stops: (() => void)[] = [];
  private input: TapeInput = { window: { from_us: 0, to_us: 1 }, brush: null, data: null };
  private drag: Drag | null = null;
  private hint: string | null = null;

  constructor(
    private readonly host: HTMLElement,
    private readonly actions: TapeActions,
  ) {
    this.base = new Surface(host, (ctx, w, h) => this.drawBase(ctx, w, h));
    this.over = new Surface(host, (ctx, w, h) => this.drawOver(ctx, w, h), "surface over");
    this.labels = new Labels(host);
    this.stops.push(cursor.subscribe(() => this.over.request()));
    this.stops.push(zone.subscribe(() => this.base.request()));
    this.listen();
  }
  set(input: TapeInput): void {
    this.input = input;
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
    const { from_us, to_us } = this.input.window;
    return ((at - from_us) / (to_us - from_us)) * this.base.width;
  }
  private timeAt(px: number): Micros {
    const { from_us, to_us } = this.input.window;
    return from_us + Math.min(1, Math.max(0, px / this.base.width)) * (to_us - from_us);
  }

  private drawBase(ctx: CanvasRenderingContext2D, width: number, height: number): void {
    this.drawTicks(width);
    const { data } = this.input;
    if (!data) return;
    this.drawBars(ctx, data, height);
    for (const gap of data.gaps) {
      const a = this.xOf(gap.from_us);
      hatch(ctx, a, BARS_TOP + 2, this.xOf(gap.to_us) - a, height, ink("--chart-gap"));
    }
    for (const marker of data.markers) {
      const x = Math.round(this.xOf(marker.at_us)) + 0.5;
      const bad = marker.kind === "exit";
      ctx.save();
      ctx.globalAlpha = 0.7;
      ctx.setLineDash([3, 3]);
      ctx.strokeStyle = ink(bad ? "--err" : "--chart-cross");
      ctx.beginPath();
      ctx.moveTo(x, 0);
      ctx.lineTo(x, height);
      ctx.stroke();
      ctx.restore();
      ctx.fillStyle = ink(bad ? "--err" : "--text-2");
      ctx.beginPath();
      ctx.moveTo(x - 3.5, 0);
      ctx.lineTo(x + 3.5, 0);
      ctx.lineTo(x, 7);
      ctx.fill();
    }
  }

  private drawTicks(width: number): void {
    this.labels.begin();
    const { at, step } = timeTicks(this.input.window, Math.max(2, Math.floor(width / (width < 400 ? 56 : 110))));
    for (const t of at) {
      const x = this.xOf(t);
      if (x < width - 34) this.labels.add(clockAxis(t, step, zone.get()), "tape-tick", x, TICKS_TOP);
    }
    this.labels.end();
  }

  private drawBars(ctx: CanvasRenderingContext2D, data: TapeData, height: number): void {
    let peak = 0;
    for (const v of data.requests) if (v !== null && v > peak) peak = v;
    if (peak === 0) return;
    const room = height - BARS_TOP - 2;
    const bars = new Path2D();
    const failed = new Path2D();
    data.requests.forEach((v, i) => {
      if (!v) return;
      const a = this.xOf(data.from_us + i * data.bucket_us);
      const w = Math.max(1, this.xOf(data.from_us + (i + 1) * data.bucket_us) - a - 1);
      const h = Math.max(1, (v / peak) * room);
      bars.rect(a, height - h, w, h);
      const bad = data.failed[i] ?? 0;
      if (bad > 0) {
        const fh = Math.max(2, (bad / v) * h);
        failed.rect(a, height - fh, w, fh);
      }
    });
    ctx.globalAlpha = 0.75;
    ctx.fillStyle = ink("--bar-info");
    ctx.fill(bars);
    ctx.globalAlpha = 1;
    ctx.fillStyle = ink("--bar-error");
    ctx.fill(failed);
  }

  private drawOver(ctx: CanvasRenderingContext2D, _width: number, height: number): void {
    const brush = this.dragged() ?? this.input.brush;
    if (brush) {
      const a = Math.max(0, this.xOf(brush.from_us));
      const b = Math.min(this.over.width, this.xOf(brush.to_us));
      ctx.fillStyle = ink("--accent-soft");
      ctx.fillRect(a, 0, b - a, height);
      ctx.fillStyle = ink("--accent");
      for (const x of [a, b - 1]) ctx.fillRect(x, 0, 1, height);
      for (const x of [a - 1, b - 2]) {
        ctx.beginPath();
        ctx.roundRect(x, BARS_TOP, 3, 14, 2);
        ctx.fill();
      }
    }
    const at = cursor.get();
    if (at === null || at < this.input.window.from_us || at > this.input.window.to_us) return;
    ctx.fillStyle = ink("--accent");
    ctx.fillRect(Math.round(this.xOf(at)), 0, 1, height);
  }

  private dragged(): { from_us: Micros; to_us: Micros } | null {
    if (!this.drag || Math.abs(this.drag.b - this.drag.a) < DRAG_MIN_PX) return null;
    const a = this.timeAt(this.drag.a);
    const b = this.timeAt(this.drag.b);
    return { from_us: Math.min(a, b), to_us: Math.max(a, b) };
  }

  private handleAt(px: number): "left" | "right" | null {
    const { brush } = this.input;
    if (!brush) return null;
    if (Math.abs(px - this.xOf(brush.from_us)) <= HANDLE_PX) return "left";
    return Math.abs(px - this.xOf(brush.to_us)) <= HANDLE_PX ? "right" : null;
  }
  private markerAt(px: number) {
    return this.input.data?.markers.find((m) => Math.abs(this.xOf(m.at_us) - px) <= MARKER_PX) ?? null;
  }
  private say(px: number): void {
    const at = this.timeAt(px);
    const gap = this.input.data?.gaps.find((g) => at >= g.from_us && at <= g.to_us);
    const text = this.markerAt(px)?.text ?? gap?.reason ?? null;
    if (text === this.hint) return;
    this.hint = text;
    this.actions.onHint(text, px);
  }

  private listen(): void {
    const { host } = this;
    const local = (event: MouseEvent) => event.clientX - host.getBoundingClientRect().left;
    const on = <K extends keyof HTMLElementEventMap>(
      name: K,
      f: (e: HTMLElementEventMap[K]) => void,
      passive = true,
    ) => {
      host.addEventListener(name, f, { passive });
      this.stops.push(() => host.removeEventListener(name, f));
    };
    on("pointermove", (event) => {
      const px = local(event);
      if (this.drag) this.drag.b = px;
      host.style.cursor = this.drag || this.handleAt(px) ? "ew-resize" : this.markerAt(px) ? "pointer" : "crosshair";
      cursor.set(this.timeAt(px));
      this.say(px);
      this.over.request();
    });
    on("pointerdown", (event) => {
      if (event.button !== 0) return;
      const px = local(event);
      const handle = this.handleAt(px);
      const { brush } = this.input;
      if (handle && brush)
        this.drag = { kind: handle, a: this.xOf(handle === "left" ? brush.to_us : brush.from_us), b: px };
      else this.drag = { kind: "new", a: px, b: px };
      host.setPointerCapture(event.pointerId);
    });
    on("pointerup", (event) => {
      const span = this.dragged();
      this.drag = null;
      this.over.request();
      if (span) return this.actions.onBrush(span.from_us, span.to_us);
      const marker = this.markerAt(local(event));
      if (marker?.href) this.actions.onOpen(marker.href);
    });
    on("pointercancel", () => {
      this.drag = null;
    });
    on("pointerleave", () => {
      cursor.set(null);
      this.hint = null;
      this.actions.onHint(null, 0);
    });
    on("dblclick", () => this.actions.onReset());
    on(
      "wheel",
      (event) => {
        event.preventDefault();
        this.actions.onZoom(
          this.timeAt(local(event)),
          Math.exp(Math.sign(event.deltaY) * Math.min(0.35, Math.abs(event.deltaY) / 400)),
        );
      },
      false,
    );
  }
}
