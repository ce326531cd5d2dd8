// A canvas that is sharp on every screen, follows the size of its host, and draws at most once a frame. No framework.

import { theme } from "../frame/theme";

export class Surface {
  readonly canvas = document.createElement("canvas");
  readonly ctx: CanvasRenderingContext2D;
  width = 0;
  height = 0;
  private frame = 0;
  private readonly observer: ResizeObserver;
  private readonly stopTheme: () => void;
  private readonly stopFonts: () => void;

  constructor(
    readonly host: HTMLElement,
    private readonly draw: (ctx: CanvasRenderingContext2D, width: number, height: number) => void,
    className = "surface",
  ) {
    this.canvas.className = className;
    this.canvas.setAttribute("aria-hidden", "true");
    const ctx = this.canvas.getContext("2d");
    if (!ctx) throw new Error("this browser has no 2D canvas");
    this.ctx = ctx;
    host.append(this.canvas);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(host);
    this.stopTheme = theme.subscribe(() => this.request());
    const again = () => this.request();
    document.fonts.addEventListener("loadingdone", again);
    this.stopFonts = () => document.fonts.removeEventListener("loadingdone", again);
    this.request();
  }

  /** Draw in the next frame. */
  request(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    this.observer.disconnect();
    this.stopTheme();
    this.stopFonts();
    this.canvas.remove();
  }

  private resize(): void {
    const { clientWidth: width, clientHeight: height } = this.host;
    const ratio = window.devicePixelRatio || 1;
    const w = Math.round(width * ratio);
    const h = Math.round(height * ratio);
    if (this.canvas.width === w && this.canvas.height === h && this.width === width) return;
    this.width = width;
    this.height = height;
    this.canvas.width = w;
    this.canvas.height = h;
    // Drawn at once: a cleared canvas for one frame would flash.
    this.paint();
  }

  private paint(): void {
    if (this.width === 0 || this.height === 0) return;
    const { ctx, width, height } = this;
    ctx.setTransform(this.canvas.width / width, 0, 0, this.canvas.height / height, 0, 0);
    ctx.clearRect(0, 0, width, height);
    this.draw(ctx, width, height);
  }
}

/** Fills a rectangle with the hatch that means "nothing is known here". */
export function hatch(
  ctx: CanvasRenderingContext2D,
  x: number,
  y: number,
  w: number,
  h: number,
  colour: string,
  gap = 5,
): void {
  if (w <= 0) return;
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, w, h);
  ctx.clip();
  ctx.strokeStyle = colour;
  ctx.lineWidth = 2;
  ctx.beginPath();
  for (let i = x - h; i < x + w + h; i += gap) {
    ctx.moveTo(i, y + h);
    ctx.lineTo(i + h, y);
  }
  ctx.stroke();
  ctx.restore();
}

/** Absolutely placed labels over a canvas, reused between draws: text stays text, with the digits of the page. */
export class Labels {
  private nodes: HTMLSpanElement[] = [];
  private used = 0;

  constructor(private readonly host: HTMLElement) {}

  begin(): void {
    this.used = 0;
  }
  add(text: string, className: string, x: number, y: number): HTMLSpanElement {
    let node = this.nodes[this.used];
    if (!node) {
      node = document.createElement("span");
      node.setAttribute("aria-hidden", "true");
      this.nodes.push(node);
      this.host.append(node);
    }
    this.used += 1;
    if (node.textContent !== text) node.textContent = text;
    if (node.className !== className) node.className = className;
    // Whole pixels: between them the edges of a label's ground are drawn as lines.
    node.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
    node.hidden = false;
    return node;
  }
  end(): void {
    for (let i = this.used; i < this.nodes.length; i += 1) (this.nodes[i] as HTMLSpanElement).hidden = true;
  }
  destroy(): void {
    for (const node of this.nodes) node.remove();
    this.nodes = [];
  }
}
