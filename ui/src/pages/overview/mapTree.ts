// The map as an indented tree for narrow screens: each node once, under the first that leads to it. Pure.

import type { MapNode, TrafficMap } from "../../api/types";

export interface TreeRow {
  node: MapNode;
  depth: number;
  /** Row of the parent, or -1. */
  parent: number;
}

export function treeOf(map: TrafficMap): TreeRow[] {
  const nodes = map.nodes.filter((n) => n.kind !== "caller");
  const byId = new Map(nodes.map((n) => [n.id, n]));
  const children = new Map<string, MapNode[]>();
  const called = new Set<string>();
  for (const e of [...map.edges].sort((a, b) => b.rate - a.rate)) {
    const to = byId.get(e.to);
    if (!to || !byId.has(e.from) || e.from === e.to) continue;
    called.add(e.to);
    children.set(e.from, [...(children.get(e.from) ?? []), to]);
  }
  const rows: TreeRow[] = [];
  const seen = new Set<string>();
  const visit = (node: MapNode, depth: number, parent: number) => {
    if (seen.has(node.id)) return;
    seen.add(node.id);
    rows.push({ node, depth, parent });
    const at = rows.length - 1;
    // What is outside stands last among its siblings: it has no page of its own.
    const own = children.get(node.id) ?? [];
    const order = (n: MapNode) => (n.kind === "outside" || n.kind === "block" ? 1 : 0);
    for (const child of [...own].sort((a, b) => order(a) - order(b))) visit(child, depth + 1, at);
  };
  const gateway = nodes.filter((n) => n.kind === "gateway");
  for (const n of [...gateway, ...nodes.filter((x) => !called.has(x.id)), ...nodes]) visit(n, 0, -1);
  return rows;
}
