// A trace as rows and segments: the tree of spans with their log rows, the critical path, and the wait that may be folded. Pure.

import type { LogRow, Nanos, SpanRow, Trace } from "../../api/types";

export interface Node {
  span: SpanRow;
  depth: number;
  children: Node[];
  logs: { at_ns: Nanos; log: LogRow }[];
  /** The parent it names was never received. */
  orphan: boolean;
  /** Latest end in its subtree. */
  end_ns: Nanos;
}
export type TraceLine =
  | { kind: "span"; node: Node; folded: boolean }
  | { kind: "log"; node: Node; at_ns: Nanos; log: LogRow; depth: number }
  | { kind: "missing"; id: string };

export interface LineOptions {
  folded: ReadonlySet<string>;
  logs: boolean;
  /** Leave out reactor's own spans; what is below them moves up. */
  plain: boolean;
}

/** reactor's own step between services: a call, a publish, a wait. What it saw of a service's own work counts as the service's. */
export const isInternal = (span: SpanRow): boolean =>
  span.own && (span.wait || (span.kind !== "server" && span.kind !== "consumer"));

export const endOf = (span: SpanRow): Nanos => span.start_ns + span.duration_ns;

export function buildTree(trace: Trace): Node[] {
  const nodes = new Map<string, Node>();
  for (const span of trace.spans)
    nodes.set(span.span_id, { span, depth: 0, children: [], logs: [], orphan: false, end_ns: endOf(span) });
  const roots: Node[] = [];
  for (const node of nodes.values()) {
    const { parent } = node.span;
    const above = parent === null || parent === node.span.span_id ? undefined : nodes.get(parent);
    if (above) above.children.push(node);
    else {
      node.orphan = parent !== null;
      roots.push(node);
    }
  }
  const reached = settle(roots);
  // Spans that name each other as parents hang on no root: they stand for themselves rather than vanish.
  for (const node of nodes.values())
    if (!reached.has(node)) {
      const above = nodes.get(node.span.parent ?? "");
      if (above) above.children = above.children.filter((child) => child !== node);
      node.orphan = true;
      roots.push(node);
      for (const found of settle([node])) reached.add(found);
    }
  for (const log of trace.logs) {
    const node = (log.span_id && nodes.get(log.span_id)) || roots[0];
    node?.logs.push({ at_ns: (log.at_us - trace.started_us) * 1000, log });
  }
  return roots.sort(byStart);
}

const byStart = (a: Node, b: Node) => a.span.start_ns - b.span.start_ns || b.end_ns - a.end_ns;

/** Sets depth and subtree ends below the roots, without recursion: a trace may be 20,000 deep. */
function settle(roots: readonly Node[]): Set<Node> {
  const order: Node[] = [];
  const seen = new Set<Node>();
  const stack = [...roots];
  while (stack.length > 0) {
    const node = stack.pop() as Node;
    if (seen.has(node)) continue;
    seen.add(node);
    order.push(node);
    for (const child of node.children) {
      child.depth = node.depth + 1;
      stack.push(child);
    }
  }
  for (let i = order.length - 1; i >= 0; i -= 1) {
    const node = order[i] as Node;
    node.children.sort(byStart);
    node.logs.sort((a, b) => a.at_ns - b.at_ns);
    for (const child of node.children) node.end_ns = Math.max(node.end_ns, child.end_ns);
  }
  return seen;
}

/** The rows in reading order: a span, then its log rows and children by time. */
export function linesOf(roots: readonly Node[], options: LineOptions): TraceLine[] {
  const lines: TraceLine[] = [];
  const stack: (Node | { log: Node["logs"][number]; node: Node; depth: number })[] = [...roots].reverse();
  const hidden = new Map<Node, number>();
  while (stack.length > 0) {
    const next = stack.pop() as (typeof stack)[number];
    if ("log" in next) {
      lines.push({ kind: "log", node: next.node, at_ns: next.log.at_ns, log: next.log.log, depth: next.depth });
      continue;
    }
    const lift = hidden.get(next) ?? 0;
    const inner = isInternal(next.span);
    const skip = options.plain && inner && next.children.length + next.logs.length > 0 && next.depth > 0;
    const drop = options.plain && inner && !skip && next.depth > 0;
    const depth = next.depth - lift;
    const folded = options.folded.has(next.span.span_id);
    if (next.orphan && next.span.parent) lines.push({ kind: "missing", id: next.span.parent });
    if (!skip && !drop) lines.push({ kind: "span", node: lift > 0 ? { ...next, depth } : next, folded });
    if (folded && !skip) continue;
    const below: { at: number; item: (typeof stack)[number] }[] = next.children.map((child) => {
      hidden.set(child, lift + (skip || drop ? 1 : 0));
      return { at: child.span.start_ns, item: child };
    });
    if (options.logs)
      for (const log of next.logs) below.push({ at: log.at_ns, item: { log, node: next, depth: depth + 1 } });
    below.sort((a, b) => b.at - a.at);
    for (const { item } of below) stack.push(item);
  }
  return lines;
}

export type Segments = ReadonlyMap<string, readonly (readonly [Nanos, Nanos])[]>;

/** Which stretch of which span held the trace up: from the last end back to the start, always the step that ended last. */
export function criticalPath(roots: readonly Node[]): Segments {
  const found = new Map<string, [Nanos, Nanos][]>();
  const last = [...roots].sort((a, b) => b.end_ns - a.end_ns)[0];
  if (!last) return found;
  const stack: { node: Node; until: Nanos }[] = [{ node: last, until: last.end_ns }];
  while (stack.length > 0) {
    const { node, until } = stack.pop() as (typeof stack)[number];
    const { span } = node;
    if (Math.min(until, endOf(span)) > span.start_ns)
      found.set(span.span_id, [[span.start_ns, Math.min(until, endOf(span))]]);
    let at = Math.min(until, node.end_ns);
    const children = [...node.children].sort((a, b) => b.end_ns - a.end_ns);
    for (const child of children) {
      if (child.span.start_ns >= at) continue;
      stack.push({ node: child, until: Math.min(child.end_ns, at) });
      at = child.span.start_ns;
    }
  }
  return found;
}

export interface Fold {
  from: Nanos;
  to: Nanos;
}
const FOLD_SHARE = 0.6;

/** The part of one wait over 60 % of the trace in which nothing else runs. */
export function foldOf(spans: readonly SpanRow[], total: Nanos): Fold | null {
  const waits = spans.filter((s) => s.wait && s.duration_ns > total * FOLD_SHARE);
  const wait = waits[0];
  if (!wait || waits.length > 1) return null;
  let from = wait.start_ns;
  let to = endOf(wait);
  for (const span of spans) {
    if (span === wait) continue;
    const [a, b] = [span.start_ns, endOf(span)];
    if (b <= from || a >= to) continue;
    if (a <= from && b >= to) return null;
    if (a <= from) from = b;
    else if (b >= to) to = a;
    else if (a - from > to - b) to = a;
    else from = b;
  }
  return to - from > total * FOLD_SHARE * 0.9 ? { from, to } : null;
}

const FOLD_WIDTH = 0.1;

/** Time to place and back, over a window of the trace; a folded stretch takes a tenth of the width. */
export class Scale {
  private readonly parts: { from: Nanos; to: Nanos; a: number; b: number }[] = [];

  constructor(
    readonly total: Nanos,
    readonly fold: Fold | null,
    /** Shown part, in places 0 to 1 of the whole. */
    readonly from = 0,
    readonly to = 1,
  ) {
    const whole = Math.max(1, total);
    if (!fold) this.parts.push({ from: 0, to: whole, a: 0, b: 1 });
    else {
      const rest = whole - (fold.to - fold.from);
      const left = ((1 - FOLD_WIDTH) * fold.from) / Math.max(1, rest);
      this.parts.push({ from: 0, to: fold.from, a: 0, b: left });
      this.parts.push({ from: fold.from, to: fold.to, a: left, b: left + FOLD_WIDTH });
      this.parts.push({ from: fold.to, to: whole, a: left + FOLD_WIDTH, b: 1 });
    }
  }

  /** Place of a time: 0 to 1 when it is in the shown part. */
  x(at: Nanos): number {
    return (this.whole(at) - this.from) / (this.to - this.from);
  }
  private whole(at: Nanos): number {
    const part = this.parts.find((p) => at <= p.to) ?? (this.parts.at(-1) as (typeof this.parts)[number]);
    return part.to === part.from ? part.a : part.a + ((at - part.from) / (part.to - part.from)) * (part.b - part.a);
  }
  at(x: number): Nanos {
    const k = this.from + x * (this.to - this.from);
    const part = this.parts.find((p) => k <= p.b) ?? (this.parts.at(-1) as (typeof this.parts)[number]);
    return part.b === part.a ? part.from : part.from + ((k - part.a) / (part.b - part.a)) * (part.to - part.from);
  }
  zoom(x: number, factor: number): Scale {
    const k = this.from + x * (this.to - this.from);
    const width = Math.min(1, Math.max(1e-7, (this.to - this.from) * factor));
    const from = Math.min(1 - width, Math.max(0, k - x * width));
    return new Scale(this.total, this.fold, from, from + width);
  }
  pan(by: number): Scale {
    const width = this.to - this.from;
    const from = Math.min(1 - width, Math.max(0, this.from + by * width));
    return new Scale(this.total, this.fold, from, from + width);
  }

  /** Round times whose labels have `gap` of the width between them; none inside the fold. */
  ticks(gap: number): Nanos[] {
    const ticks: Nanos[] = [];
    let last = Number.NEGATIVE_INFINITY;
    const parts = this.fold ? [this.parts[0], this.parts[2]] : this.parts;
    for (const part of parts as (typeof this.parts)[number][]) {
      const a = Math.max(part.from, this.at(0));
      const b = Math.min(part.to, this.at(1));
      if (b <= a) continue;
      const places = Math.max(1, Math.floor((this.x(b) - this.x(a)) / gap));
      const step = roundStep((b - a) / places);
      for (let t = Math.ceil(a / step) * step; t <= b; t += step) {
        const x = this.x(t);
        if (x < last + gap || x > 0.97) continue;
        ticks.push(t);
        last = x;
      }
    }
    return ticks;
  }
}

/** The next of 1, 2 or 5 times a power of ten. */
export function roundStep(step: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, step)));
  const mantissa = [1, 2, 5, 10].find((m) => m * power >= step) ?? 10;
  return mantissa * power;
}

/** Where the time went: the steps of the trace by their own share, longest first. */
export function longestStep(spans: readonly SpanRow[], total: Nanos): { span: SpanRow; share: number } | null {
  const parents = new Set(spans.map((s) => s.parent));
  const leaves = spans.filter((s) => s.wait || !parents.has(s.span_id));
  const span = leaves.sort((a, b) => b.duration_ns - a.duration_ns)[0];
  return span && total > 0 ? { span, share: span.duration_ns / total } : null;
}

/** Time in which none of its children ran. */
export function selfTime(node: Node): Nanos {
  const own: [Nanos, Nanos] = [node.span.start_ns, endOf(node.span)];
  let covered = 0;
  let at = own[0];
  for (const child of node.children) {
    const a = Math.max(at, child.span.start_ns);
    const b = Math.min(own[1], endOf(child.span));
    if (b > a) {
      covered += b - a;
      at = b;
    }
  }
  return Math.max(0, node.span.duration_ns - covered);
}

/** What a root is called: method and path of a request, whose name says only the route; else its name. */
export function titleOf(span: Pick<SpanRow, "kind" | "name" | "attributes">): string {
  const method = span.attributes["http.request.method"];
  const path = span.attributes["url.path"];
  return span.kind === "server" && typeof method === "string" && typeof path === "string"
    ? `${method} ${path}`
    : span.name;
}
