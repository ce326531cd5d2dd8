// Where the nodes of the map stand: five columns, rows that fit, a lane at the bottom for what is outside. Pure. A node keeps its
// place when others come and go: places are remembered and only new nodes are given one.

import type { MapEdge, MapNode } from "../../api/types";

export interface Box {
  x: number;
  y: number;
  w: number;
  h: number;
  column: number;
  /** Row in the column, or -1 in the bottom lane. */
  row: number;
}
export interface Places {
  /** Row of each node in its column; lane nodes have their position in the lane. */
  rows: ReadonlyMap<string, { column: number; row: number; lane: boolean }>;
}
export interface Laid {
  boxes: Map<string, Box>;
  columns: { x: number; w: number; name: string }[];
  width: number;
  height: number;
  laneY: number;
}

export const NODE_H = 48;
const WIDTHS = [104, 146, 146, 140, 146];
export const COLUMN_NAMES = ["Callers", "Gateway", "Services", "Queues", "Consumers"];
const SIDE = 16;
const RIGHT = 24;
const TOP = 40;
const PITCH_MAX = 106;
const PITCH_MIN = 64;
/** The lane, its distance from the rows above and from the edge. */
const LANE_ROOM = 50 + NODE_H + 12;
const GAPS = [0.178, 0.232, 0.288, 0.302];
const GAP_MIN = 40;

const inLane = (node: MapNode): boolean => node.kind === "outside" || node.kind === "block";

/** Rows for everything from nothing: a service takes as many rows as it has things to its right, so that edges stay short. */
export function placeAll(nodes: readonly MapNode[], edges: readonly MapEdge[]): Places {
  const board = new Board();
  const byId = new Map(nodes.map((n) => [n.id, n]));
  const out = outgoing(edges, byId);
  const rate = (n: MapNode) => n.rate ?? 0;
  const by = (a: MapNode, b: MapNode) => rate(b) - rate(a) || (a.id < b.id ? -1 : 1);
  const right = (n: MapNode) => (out.get(n.id) ?? []).filter((t) => t.column > n.column && !inLane(t));
  const services = nodes.filter((n) => n.column === 2 && !inLane(n));
  services.sort((a, b) => Math.min(1, right(b).length) - Math.min(1, right(a).length) || by(a, b));
  let next = 0;
  for (const service of services) {
    const targets = right(service).filter((t) => !board.has(t.id));
    targets.sort((a, b) => a.column - b.column || by(a, b));
    // Services called directly stand first: above them is no queue to pass.
    const ordered = [...targets.filter((t) => t.column === 4), ...targets.filter((t) => t.column === 3)];
    const block = Math.max(1, ordered.length);
    ordered.forEach((target, i) => {
      placeBranch(board, target, next + i, out);
    });
    board.take(service.id, 2, next + Math.floor((block - 1) / 2));
    next = Math.max(next + block, board.end(3), board.end(4));
  }
  for (const n of nodes) if (n.column === 3 && !inLane(n) && !board.has(n.id)) placeBranch(board, n, board.end(3), out);
  placeLeft(board, nodes, edges);
  for (const n of nodes) if (!inLane(n) && !board.has(n.id)) board.take(n.id, n.column, board.end(n.column));
  placeLane(board, nodes, edges, byId);
  return { rows: board.rows };
}

function placeBranch(board: Board, node: MapNode, row: number, out: Map<string, MapNode[]>): void {
  if (board.has(node.id)) return;
  board.take(node.id, node.column, row);
  const at = board.rows.get(node.id)?.row ?? row;
  for (const next of out.get(node.id) ?? [])
    if (next.column === 4 && !inLane(next) && !board.has(next.id)) board.take(next.id, 4, at);
}

function placeLeft(board: Board, nodes: readonly MapNode[], edges: readonly MapEdge[]): void {
  for (const gateway of nodes.filter((n) => n.column === 1)) {
    const first = edges
      .filter((e) => e.from === gateway.id)
      .map((e) => board.rows.get(e.to))
      .filter((p) => p !== undefined && !p.lane)
      .reduce((low, p) => Math.min(low, p?.row ?? low), Number.POSITIVE_INFINITY);
    board.take(gateway.id, 1, Number.isFinite(first) ? first : 0);
  }
  const anchor = [...board.rows.values()].find((p) => p.column === 1)?.row ?? 0;
  const sent = (n: MapNode) => edges.reduce((sum, e) => (e.from === n.id ? sum + e.rate : sum), 0);
  const callers = nodes.filter((n) => n.column === 0).sort((a, b) => sent(b) - sent(a) || (a.id < b.id ? -1 : 1));
  for (const caller of callers) board.take(caller.id, 0, anchor);
}

function placeLane(
  board: Board,
  nodes: readonly MapNode[],
  edges: readonly MapEdge[],
  byId: Map<string, MapNode>,
): void {
  for (const node of nodes.filter(inLane).sort((a, b) => a.column - b.column || (a.id < b.id ? -1 : 1))) {
    if (board.has(node.id)) continue;
    const caller = edges.find((e) => e.to === node.id);
    const wanted = node.column || (caller ? byId.get(caller.from)?.column : undefined) || 2;
    board.takeLane(node.id, Math.min(4, Math.max(1, wanted)));
  }
}

/** Keeps every place that is known and finds one for what is new, nearest to what it talks to. */
export function placeMore(known: Places, nodes: readonly MapNode[], edges: readonly MapEdge[]): Places {
  const board = new Board();
  const byId = new Map(nodes.map((n) => [n.id, n]));
  for (const n of nodes) {
    const place = known.rows.get(n.id);
    if (place && place.lane === inLane(n) && (place.lane || place.column === n.column)) board.keep(n.id, place);
  }
  for (const n of [...nodes].sort((a, b) => a.column - b.column)) {
    if (board.has(n.id) || inLane(n)) continue;
    const neighbours = edges
      .filter((e) => e.from === n.id || e.to === n.id)
      .map((e) => board.rows.get(e.from === n.id ? e.to : e.from));
    const near = neighbours.find((p) => p && !p.lane);
    board.take(n.id, n.column, near?.row ?? board.end(n.column));
  }
  placeLane(board, nodes, edges, byId);
  return { rows: board.rows };
}

class Board {
  readonly rows = new Map<string, { column: number; row: number; lane: boolean }>();
  private taken = new Set<string>();

  has(id: string): boolean {
    return this.rows.has(id);
  }
  end(column: number): number {
    let end = 0;
    for (const p of this.rows.values()) if (p.column === column && !p.lane) end = Math.max(end, p.row + 1);
    return end;
  }
  keep(id: string, place: { column: number; row: number; lane: boolean }): void {
    this.rows.set(id, place);
    this.taken.add(`${place.lane ? "lane" : "row"} ${place.column} ${place.row}`);
  }
  /** The wanted row, or the nearest free one, below before above. */
  take(id: string, column: number, wanted: number): void {
    for (let d = 0; ; d += 1) {
      for (const row of d === 0 ? [wanted] : [wanted + d, wanted - d]) {
        if (row < 0 || this.taken.has(`row ${column} ${row}`)) continue;
        this.keep(id, { column, row, lane: false });
        return;
      }
    }
  }
  takeLane(id: string, wanted: number): void {
    const order = [wanted, 2, 3, 4, 1];
    for (let row = 0; ; row += 1) {
      const column = order.find((c) => !this.taken.has(`lane ${c} ${row}`));
      if (column === undefined) continue;
      this.keep(id, { column, row, lane: true });
      return;
    }
  }
}

function outgoing(edges: readonly MapEdge[], byId: Map<string, MapNode>): Map<string, MapNode[]> {
  const out = new Map<string, MapNode[]>();
  for (const edge of edges) {
    const target = byId.get(edge.to);
    if (target) out.set(edge.from, [...(out.get(edge.from) ?? []), target]);
  }
  return out;
}

/** Places into pixels. Columns share the width by fixed proportions; rows share the height, and overflow makes the map taller. */
export function layOut(places: Places, nodes: readonly MapNode[], width: number, height: number): Laid {
  const free = Math.max(GAP_MIN * 4, width - SIDE - RIGHT - WIDTHS.reduce((a, b) => a + b, 0));
  const columns: Laid["columns"] = [];
  let x = SIDE;
  WIDTHS.forEach((w, i) => {
    columns.push({ x, w, name: COLUMN_NAMES[i] as string });
    x += w + free * (GAPS[i] ?? 0);
  });
  const shown = nodes.map((n) => ({ n, p: places.rows.get(n.id) })).filter((s) => s.p !== undefined);
  const rows = 1 + shown.reduce((max, s) => Math.max(max, s.p?.lane ? -1 : (s.p?.row ?? 0)), 0);
  const lanes = shown.reduce((max, s) => Math.max(max, s.p?.lane ? (s.p?.row ?? 0) + 1 : 0), 0);
  const laneRoom = lanes === 0 ? 12 : LANE_ROOM + (lanes - 1) * 62;
  const pitch = Math.min(PITCH_MAX, Math.max(PITCH_MIN, (height - TOP - laneRoom - NODE_H) / Math.max(1, rows - 1)));
  const bottom = TOP + (rows - 1) * pitch + NODE_H;
  const laneY = Math.max(bottom + 50, height - laneRoom + 50);
  const total = Math.max(height, lanes === 0 ? bottom + 12 : laneY + NODE_H + (lanes - 1) * 62 + 12);
  const boxes = new Map<string, Box>();
  for (const { n, p } of shown) {
    if (!p) continue;
    const column = columns[p.column] as { x: number; w: number };
    const y = p.lane ? laneY + p.row * 62 : Math.round(TOP + p.row * pitch);
    boxes.set(n.id, { x: Math.round(column.x), y, w: column.w, h: NODE_H, column: p.column, row: p.lane ? -1 : p.row });
  }
  return { boxes, columns, width: Math.max(width, Math.round(x + RIGHT)), height: total, laneY };
}
