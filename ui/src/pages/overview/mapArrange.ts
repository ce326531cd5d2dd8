// The server's topology as the map tells it: which services are called from outside and which stand behind others, and which
// queues are only the way a direct call takes. Pure.

import type { MapEdge, MapNode, TrafficMap } from "../../api/types";

/** Columns given before, by node: a service that stood behind others stays there when its edges go. */
export type Columns = Map<string, MapNode["column"]>;

export function arrange(map: TrafficMap, known: Columns): TrafficMap {
  const hidden = callQueues(map);
  const edges = map.edges.filter((e) => !hidden.has(e.from) && !hidden.has(e.to));
  const nodes = map.nodes.filter((n) => !hidden.has(n.id)).map((n) => placed(n, map.edges, known));
  return { nodes, edges };
}

/** Services the gateway or a caller reaches, and those that nothing reaches, in the third column; the others behind the queues. */
function placed(node: MapNode, edges: readonly MapEdge[], known: Columns): MapNode {
  if (node.kind !== "service") return node;
  const incoming = edges.filter((e) => e.to === node.id && e.from !== node.id);
  const outside = (e: MapEdge) => e.from === "gateway" || e.from.startsWith("caller:");
  const column = incoming.some(outside) ? 2 : incoming.length > 0 ? 4 : (known.get(node.id) ?? 2);
  if (incoming.length > 0) known.set(node.id, column);
  return column === node.column ? node : { ...node, column };
}

/** A queue that nobody publishes to by name carries direct calls: its service's own edge tells them. It is shown when it needs a look. */
function callQueues(map: TrafficMap): Set<string> {
  const out = new Set<string>();
  for (const n of map.nodes) {
    if (n.kind !== "queue" || n.tone !== "normal" || map.edges.some((e) => e.to === n.id)) continue;
    const targets = map.edges.filter((e) => e.from === n.id).map((e) => e.to);
    const called = (id: string) => map.edges.some((e) => e.to === id && e.from !== n.id);
    if (targets.length > 0 && targets.every(called)) out.add(n.id);
  }
  return out;
}
