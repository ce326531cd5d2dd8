// Over 24 nodes the map groups by the first part of the name; a group opens in place. Pure.

import type { MapEdge, MapNode, TrafficMap } from "../../api/types";

export const NODES_MAX = 24;
const MEMBERS_MIN = 3;

/** A node as the map draws it: one of the server's, or a group with so many members. */
export interface ShownNode extends MapNode {
  members?: number;
}
export interface ShownMap extends TrafficMap {
  nodes: ShownNode[];
}
export interface Grouped {
  map: ShownMap;
  /** Members of each shown group. */
  groups: ReadonlyMap<string, readonly MapNode[]>;
}

const prefixOf = (name: string): string => /^[^.\-_/: ]+/.exec(name)?.[0] ?? name;
const groupable = (n: MapNode): boolean => n.kind !== "gateway";

export function groupMap(map: TrafficMap, open: ReadonlySet<string>): Grouped {
  const none: Grouped = { map, groups: new Map() };
  if (map.nodes.length <= NODES_MAX) return none;
  const families = new Map<string, MapNode[]>();
  for (const n of map.nodes) {
    if (!groupable(n)) continue;
    const key = `${n.kind} ${n.column} ${prefixOf(n.name)}`;
    families.set(key, [...(families.get(key) ?? []), n]);
  }
  const groups = new Map<string, MapNode[]>();
  for (const [key, members] of families) if (members.length >= MEMBERS_MIN) groups.set(`group:${key}`, members);
  gatherRest(map, groups);
  for (const id of open) groups.delete(id);
  const memberOf = new Map<string, string>();
  for (const [id, members] of groups) for (const m of members) memberOf.set(m.id, id);
  const nodes: ShownNode[] = map.nodes.filter((n) => !memberOf.has(n.id));
  for (const [id, members] of groups) nodes.push(groupNode(id, members));
  return { map: { nodes, edges: mergeEdges(map.edges, memberOf) }, groups };
}

/** Still too many: what has no family becomes one "others" a column, the busiest staying out. */
function gatherRest(map: TrafficMap, groups: Map<string, MapNode[]>): void {
  const grouped = new Set([...groups.values()].flat().map((n) => n.id));
  const single = map.nodes.filter((n) => groupable(n) && !grouped.has(n.id));
  let over = single.length + groups.size + 1 - NODES_MAX;
  for (const column of [2, 3, 4, 0] as const) {
    if (over <= 0) return;
    const here = single.filter((n) => n.column === column).sort((a, b) => (b.rate ?? 0) - (a.rate ?? 0));
    const rest = here.slice(Math.max(3, here.length - over - 1));
    const byKind = new Map<string, MapNode[]>();
    for (const n of rest) byKind.set(n.kind, [...(byKind.get(n.kind) ?? []), n]);
    for (const [kind, members] of byKind) {
      if (members.length < 2) continue;
      groups.set(`group:${kind} ${column} others`, members);
      over -= members.length - 1;
    }
  }
}

const worst = (tones: MapNode["tone"][]): MapNode["tone"] =>
  tones.includes("err") ? "err" : tones.includes("warn") ? "warn" : "normal";
const sum = (values: (number | null)[]): number | null =>
  values.reduce<number | null>((a, v) => (v === null ? a : (a ?? 0) + v), null);
const max = (values: (number | null)[]): number | null =>
  values.reduce<number | null>((a, v) => (v === null ? a : Math.max(a ?? v, v)), null);

function groupNode(id: string, members: readonly MapNode[]): ShownNode {
  const first = members[0] as MapNode;
  const prefix = id.split(" ").at(-1) as string;
  const rate = sum(members.map((m) => m.rate));
  const failing = members.reduce((n, m) => n + (m.rate ?? 0) * (m.error_share ?? 0), 0);
  const states = members.map((m) => m.state);
  const queues = members.map((m) => m.queue).filter((q) => q !== null);
  return {
    id,
    kind: first.kind,
    column: first.column,
    name: prefix === "others" ? "others" : `${prefix}…`,
    members: members.length,
    slot: null,
    state: states.includes("failing") ? "failing" : states.includes("degraded") ? "degraded" : first.state,
    tone: worst(members.map((m) => m.tone)),
    rate,
    error_share: rate ? failing / rate : rate,
    p95_ns: max(members.map((m) => m.p95_ns)),
    instances: members.flatMap((m) => m.instances),
    queue:
      queues.length === 0
        ? null
        : {
            ready: queues.reduce((n, q) => n + q.ready, 0),
            unacked: queues.reduce((n, q) => n + q.unacked, 0),
            limit: null,
            wait_ns: max(queues.map((q) => q.wait_ns)),
          },
  };
}

function mergeEdges(edges: readonly MapEdge[], memberOf: ReadonlyMap<string, string>): MapEdge[] {
  const merged = new Map<string, MapEdge>();
  for (const e of edges) {
    const from = memberOf.get(e.from) ?? e.from;
    const to = memberOf.get(e.to) ?? e.to;
    if (from === to) continue;
    const key = `${from} > ${to}`;
    const known = merged.get(key);
    if (!known) {
      merged.set(key, { ...e, from, to });
      continue;
    }
    const rate = known.rate + e.rate;
    merged.set(key, {
      from,
      to,
      rate,
      error_share: rate === 0 ? 0 : (known.rate * known.error_share + e.rate * e.error_share) / rate,
      p95_ns: max([known.p95_ns, e.p95_ns]),
      tone: worst([known.tone, e.tone]),
      last_us: Math.max(known.last_us, e.last_us),
    });
  }
  return [...merged.values()];
}

/** Everything on a way through a node: what leads to it and what it leads to. */
export function pathsThrough(id: string, edges: readonly MapEdge[]): Set<string> {
  const seen = new Set([id]);
  const walk = (next: (e: MapEdge, at: string) => string | null) => {
    const queue = [id];
    const been = new Set([id]);
    for (let at = queue.pop(); at !== undefined; at = queue.pop()) {
      for (const e of edges) {
        const to = next(e, at);
        if (to === null || been.has(to)) continue;
        been.add(to);
        seen.add(to);
        queue.push(to);
      }
    }
  };
  walk((e, at) => (e.from === at ? e.to : null));
  walk((e, at) => (e.to === at ? e.from : null));
  return seen;
}
