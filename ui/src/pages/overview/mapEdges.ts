// How the edges of the map run: horizontal and vertical lines with corners of 8 px, around what stands in between, and where
// their labels fit. Pure.

import type { MapEdge } from "../../api/types";
import type { Box, Laid } from "./mapLayout";

export interface Point {
  x: number;
  y: number;
}
export interface Routed {
  edge: MapEdge;
  path: string;
  points: Point[];
}
export interface Label {
  x: number;
  y: number;
  w: number;
  /** How much of the text fits: rate, errors and duration, or the rate alone. */
  parts: number;
}

const CORNER = 8;
/** A port stays on its node's side, off the corners. */
const PORT_MAX = 16;

export const edgeWidth = (rate: number): number =>
  Math.max(1.25, Math.min(4.5, 0.9 + Math.log10(Math.max(rate, 0.01)) * 1.35));
/** Beads stand closer together the higher the rate. */
export const beadGap = (rate: number): number => Math.round(Math.max(9, 64 - Math.log10(Math.max(rate, 0.1)) * 20));

export function routeAll(edges: readonly MapEdge[], laid: Laid): Routed[] {
  const ports = new Ports();
  const out: Routed[] = [];
  for (const edge of edges) {
    const a = laid.boxes.get(edge.from);
    const b = laid.boxes.get(edge.to);
    if (!a || !b || edge.from === edge.to) continue;
    const points = tidy(route(edge, a, b, laid, ports));
    out.push({ edge, points, path: pathOf(points) });
  }
  return out;
}

/** Gives parallel lines their own place: the first of a kind stands in the middle, others beside it. */
class Ports {
  private used = new Map<string, number>();
  offset(key: string, step: number): number {
    const n = this.used.get(key) ?? 0;
    this.used.set(key, n + 1);
    const away = (n % 2 === 1 ? 1 : -1) * Math.ceil(n / 2) * step;
    return Math.max(-PORT_MAX, Math.min(PORT_MAX, away));
  }
  next(key: string, step: number): number {
    const n = this.used.get(key) ?? 0;
    this.used.set(key, n + 1);
    return n * step;
  }
}

const midY = (b: Box): number => b.y + b.h / 2;
const midX = (b: Box): number => b.x + b.w / 2;

function route(edge: MapEdge, a: Box, b: Box, laid: Laid, ports: Ports): Point[] {
  if (b.row < 0) return toLane(edge, a, b, laid, ports);
  if (b.column > a.column) return forward(edge, a, b, laid, ports);
  return backward(edge, a, b, ports);
}

function forward(edge: MapEdge, a: Box, b: Box, laid: Laid, ports: Ports): Point[] {
  const straight = Math.abs(midY(a) - midY(b)) < 1;
  const start = { x: a.x + a.w, y: midY(a) - (midY(b) < midY(a) - 1 ? 8 : 0) };
  const end = { x: b.x, y: midY(b) + (straight ? 0 : ports.offset(`${edge.to} left`, 8)) };
  const blocked = between(a, b, laid, midY(b));
  if (straight && !blocked) return [start, end];
  // One trunk for all that leave a node: they part where their rows are.
  const trunk = a.x + a.w + Math.min(24, ((laid.columns[a.column + 1]?.x ?? b.x) - a.x - a.w) * 0.4);
  if (!blocked) return [start, { x: trunk, y: start.y }, { x: trunk, y: end.y }, end];
  const lane = b.y - 14 - ports.next(`above ${b.row}`, 6);
  const last = b.x - 20;
  return [start, { x: trunk, y: start.y }, { x: trunk, y: lane }, { x: last, y: lane }, { x: last, y: end.y }, end];
}

/** Whether something stands on the row of the target in a column that is passed. */
function between(a: Box, b: Box, laid: Laid, y: number): boolean {
  for (const box of laid.boxes.values()) {
    if (box.column > a.column && box.column < b.column && box.row >= 0 && y > box.y - 10 && y < box.y + box.h + 12)
      return true;
  }
  return false;
}

function backward(edge: MapEdge, a: Box, b: Box, ports: Ports): Point[] {
  const out = a.x + a.w + 12 + ports.next(`back ${a.column}`, 6);
  const start = { x: a.x + a.w, y: midY(a) + ports.offset(`${edge.from} right`, 8) };
  const end = { x: b.x + b.w, y: midY(b) + ports.offset(`${edge.to} right`, 8) };
  if (a.column === b.column) return [start, { x: out, y: start.y }, { x: out, y: end.y }, end];
  const lane = b.y + b.h + 14 + ports.next(`below ${b.row}`, 6);
  const last = b.x + b.w + 20;
  return [start, { x: out, y: start.y }, { x: out, y: lane }, { x: last, y: lane }, { x: last, y: end.y }, end];
}

function toLane(edge: MapEdge, a: Box, b: Box, laid: Laid, ports: Ports): Point[] {
  const covered = [...laid.boxes.values()].some(
    (box) => box.column === a.column && box.row > a.row && box.y > a.y && box !== b,
  );
  const down = { x: midX(b) + ports.offset(`${edge.to} top`, 26), y: b.y };
  const above = laid.laneY - 22 - ports.next("lane", 7);
  if (!covered) {
    const start = { x: midX(a) + ports.offset(`${edge.from} bottom`, 26), y: a.y + a.h };
    if (a.column === b.column && b.y < laid.laneY + 1) return [start, { x: start.x, y: b.y }];
    return [start, { x: start.x, y: above }, { x: down.x, y: above }, down];
  }
  const out = a.x + a.w + 12 + ports.next(`back ${a.column}`, 6);
  const start = { x: a.x + a.w, y: midY(a) + ports.offset(`${edge.from} right`, 8) };
  if (a.column === b.column)
    return [start, { x: out, y: start.y }, { x: out, y: midY(b) }, { x: b.x + b.w, y: midY(b) }];
  return [start, { x: out, y: start.y }, { x: out, y: above }, { x: down.x, y: above }, down];
}

/** Drops points that do not turn. */
function tidy(points: Point[]): Point[] {
  const same = (a: number, b: number) => Math.abs(a - b) < 0.5;
  const out: Point[] = [];
  for (const p of points) {
    const [before, last] = [out.at(-2), out.at(-1)];
    if (last && same(last.x, p.x) && same(last.y, p.y)) continue;
    if (
      before &&
      last &&
      ((same(before.x, last.x) && same(last.x, p.x)) || (same(before.y, last.y) && same(last.y, p.y)))
    )
      out.pop();
    out.push(p);
  }
  return out;
}

/** `M … H … Q …`: corners of 8 px, smaller where a piece is short. */
export function pathOf(points: readonly Point[]): string {
  const first = points[0];
  if (!first) return "";
  let path = `M${round(first.x)} ${round(first.y)}`;
  for (let i = 1; i < points.length; i += 1) {
    const p = points[i] as Point;
    const next = points[i + 1];
    if (!next) {
      path += `L${round(p.x)} ${round(p.y)}`;
      continue;
    }
    const from = points[i - 1] as Point;
    const r = Math.min(CORNER, distance(from, p) / 2, distance(p, next) / 2);
    const a = towards(p, from, r);
    const b = towards(p, next, r);
    path += `L${round(a.x)} ${round(a.y)}Q${round(p.x)} ${round(p.y)} ${round(b.x)} ${round(b.y)}`;
  }
  return path;
}
const round = (v: number): string => String(Math.round(v * 10) / 10);
const distance = (a: Point, b: Point): number => Math.abs(a.x - b.x) + Math.abs(a.y - b.y);
export const lengthOf = (points: readonly Point[]): number =>
  points.slice(1).reduce((sum, p, i) => sum + distance(points[i] as Point, p), 0);
function towards(from: Point, to: Point, r: number): Point {
  const d = distance(from, to) || 1;
  return { x: from.x + ((to.x - from.x) / d) * r, y: from.y + ((to.y - from.y) / d) * r };
}

/**
 * Finds room for a label on its edge: on the longest piece, off the nodes, other labels and other edges; shorter if it must. Without
 * room there is none: the rate of a single edge stands in its node too, and hovering shows it.
 */
export function placeLabels(
  routed: readonly Routed[],
  widths: (edge: MapEdge) => number[],
  laid: Laid,
): (Label | null)[] {
  const taken: Rect[] = [...laid.boxes.values()].map((b) => ({ x: b.x, y: b.y, w: b.w, h: b.h }));
  const lines = routed.map((r) => pieces(r.points).map(({ a, b }) => around(a, b)));
  return routed.map((r, self) => {
    const others = lines.filter((_, i) => i !== self).flat();
    for (const [i, w] of widths(r.edge).entries()) {
      const fits = (s: Point) =>
        s.x - w / 2 > 0 &&
        s.x + w / 2 < laid.width &&
        taken.every((t) => clear(t, s, w)) &&
        others.every((t) => clear(t, s, w));
      const spot = spots(r.points, w).find(fits);
      if (!spot) continue;
      taken.push({ x: spot.x - w / 2, y: spot.y - 9, w, h: 18 });
      return { x: spot.x, y: spot.y, w, parts: widths(r.edge).length - i };
    }
    return null;
  });
}
interface Rect extends Point {
  w: number;
  h: number;
}
const LINE_ROOM = 3;
const around = (a: Point, b: Point): Rect => ({
  x: Math.min(a.x, b.x) - LINE_ROOM,
  y: Math.min(a.y, b.y) - LINE_ROOM,
  w: Math.abs(a.x - b.x) + 2 * LINE_ROOM,
  h: Math.abs(a.y - b.y) + 2 * LINE_ROOM,
});
const clear = (t: Rect, s: Point, w: number): boolean =>
  s.x + w / 2 <= t.x || s.x - w / 2 >= t.x + t.w || s.y + 8 <= t.y || s.y - 8 >= t.y + t.h;

const pieces = (points: readonly Point[]) =>
  points.slice(1).map((b, i) => ({ a: points[i] as Point, b, length: distance(points[i] as Point, b) }));

function spots(points: readonly Point[], w: number): Point[] {
  const out: Point[] = [];
  for (const { a, b, length } of pieces(points).sort((p, q) => q.length - p.length)) {
    const horizontal = Math.abs(a.y - b.y) < 1;
    for (const k of [0.5, 0.3, 0.7]) {
      const at = { x: a.x + (b.x - a.x) * k, y: a.y + (b.y - a.y) * k };
      // A piece too short for its text carries it above the line.
      if (horizontal && length < w + 24) out.push({ x: at.x, y: at.y - 15 });
      else if (horizontal || length > 24) out.push(at);
    }
  }
  return out;
}
