import { expect, test } from "vitest";
import type { MapEdge, MapNode, TrafficMap } from "../../api/types";
import { arrange } from "./mapArrange";
import { beadGap, edgeWidth, placeLabels, routeAll } from "./mapEdges";
import { groupMap, NODES_MAX, pathsThrough } from "./mapGroups";
import { type Box, layOut, placeAll, placeMore } from "./mapLayout";
import { treeOf } from "./mapTree";

const node = (id: string, column: MapNode["column"], kind: MapNode["kind"] = "service", rate = 1): MapNode => ({
  id,
  kind,
  column,
  name: id,
  slot: 1,
  state: "ready",
  tone: "normal",
  rate,
  error_share: 0,
  p95_ns: null,
  instances: [],
  queue: null,
});
const edge = (from: string, to: string, rate = 1): MapEdge => ({
  from,
  to,
  rate,
  error_share: 0,
  p95_ns: null,
  tone: "normal",
  last_us: 0,
});

const shop = (): TrafficMap => ({
  nodes: [
    node("storefront", 0, "caller"),
    node("curl", 0, "caller", 0.5),
    node("gateway", 1, "gateway"),
    node("orders", 2, "service", 118),
    node("catalog", 2, "service", 284),
    node("payments", 4),
    node("mailer.event", 3, "queue"),
    node("worker.orders", 3, "queue"),
    node("mailer", 4),
    node("worker", 4),
    node("postgres", 2, "outside"),
    node("stripe", 4, "outside"),
  ],
  edges: [
    edge("storefront", "gateway", 398),
    edge("curl", "gateway", 14),
    edge("gateway", "orders", 118),
    edge("gateway", "catalog", 284),
    edge("orders", "payments", 41),
    edge("orders", "mailer.event", 41),
    edge("orders", "worker.orders", 41),
    edge("mailer.event", "mailer", 41),
    edge("worker.orders", "worker", 36),
    edge("catalog", "postgres", 96),
    edge("payments", "stripe", 39),
  ],
});

test("a service called directly stands above the queues, consumers beside their queues", () => {
  const { rows } = placeAll(shop().nodes, shop().edges);
  const row = (id: string) => rows.get(id)?.row;
  expect([row("payments"), row("mailer.event"), row("worker.orders")]).toEqual([0, 1, 2]);
  expect([row("mailer"), row("worker")]).toEqual([1, 2]);
  expect([row("orders"), row("gateway"), row("catalog")]).toEqual([1, 1, 3]);
  expect(rows.get("postgres")).toMatchObject({ lane: true, column: 2 });
});

test("no two nodes share a place", () => {
  const { nodes, edges } = shop();
  const laid = layOut(placeAll(nodes, edges), nodes, 930, 534);
  const boxes = [...laid.boxes.values()];
  const apart = (a: Box, b: Box) => a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
  boxes.forEach((a, i) => {
    for (const b of boxes.slice(i + 1)) expect(apart(a, b)).toBe(true);
  });
});

test("a node keeps its place when others come and go", () => {
  const { nodes, edges } = shop();
  const before = placeAll(nodes, edges);
  const without = nodes.filter((n) => n.id !== "mailer.event" && n.id !== "payments");
  const after = placeMore(
    before,
    [...without, node("audit", 4), node("billing", 2)],
    [...edges, edge("gateway", "billing")],
  );
  for (const n of without) expect(after.rows.get(n.id)).toEqual(before.rows.get(n.id));
  expect(after.rows.has("audit")).toBe(true);
  expect(after.rows.has("payments")).toBe(false);
  const again = placeMore(before, nodes, edges);
  expect(again.rows).toEqual(before.rows);
});

test("edges run straight or turn at right angles and end at their nodes", () => {
  const { nodes, edges } = shop();
  const laid = layOut(placeAll(nodes, edges), nodes, 930, 534);
  const routed = routeAll(edges, laid);
  expect(routed).toHaveLength(edges.length);
  for (const r of routed) {
    r.points.slice(1).forEach((p, i) => {
      const q = r.points[i] as { x: number; y: number };
      expect(Math.min(Math.abs(p.x - q.x), Math.abs(p.y - q.y))).toBeLessThan(0.5);
    });
    const from = laid.boxes.get(r.edge.from) as Box;
    const start = r.points[0] as { x: number; y: number };
    expect(start.x >= from.x && start.x <= from.x + from.w && start.y >= from.y && start.y <= from.y + from.h).toBe(
      true,
    );
  }
});

test("an edge goes around a node on its row", () => {
  const nodes = [node("a", 2), node("q", 3, "queue"), node("b", 4)];
  const edges = [edge("a", "b")];
  const places = placeMore(
    {
      rows: new Map([
        ["a", { column: 2, row: 0, lane: false }],
        ["q", { column: 3, row: 0, lane: false }],
        ["b", { column: 4, row: 0, lane: false }],
      ]),
    },
    nodes,
    edges,
  );
  const laid = layOut(places, nodes, 930, 534);
  const q = laid.boxes.get("q") as Box;
  const [routed] = routeAll(edges, laid);
  routed?.points.slice(1).forEach((p, i) => {
    const o = routed.points[i] as { x: number; y: number };
    const horizontal = Math.abs(p.y - o.y) < 1 && Math.min(p.x, o.x) < q.x && Math.max(p.x, o.x) > q.x + q.w;
    if (horizontal) expect(p.y < q.y || p.y > q.y + q.h).toBe(true);
  });
});

test("labels stand off the nodes and off each other, or shrink, or are left out", () => {
  const { nodes, edges } = shop();
  const laid = layOut(placeAll(nodes, edges), nodes, 930, 534);
  const routed = routeAll(edges, laid);
  const labels = placeLabels(routed, () => [90, 40], laid).filter((l) => l !== null);
  expect(labels.length).toBeGreaterThan(7);
  labels.forEach((a, i) => {
    for (const b of labels.slice(i + 1))
      expect(Math.abs(a.x - b.x) >= (a.w + b.w) / 2 || Math.abs(a.y - b.y) >= 16).toBe(true);
  });
});

test("width and beads follow the rate within their bounds", () => {
  expect(edgeWidth(0.1)).toBe(1.25);
  expect(edgeWidth(398)).toBeCloseTo(4.41, 1);
  expect(edgeWidth(1e6)).toBe(4.5);
  expect(beadGap(1)).toBeGreaterThan(beadGap(100));
  expect(beadGap(1e6)).toBe(9);
});

test("over 24 nodes families become groups, and one opens in place", () => {
  const nodes = [
    node("gateway", 1, "gateway"),
    ...Array.from({ length: 40 }, (_, i) => node(`${["billing", "search"][i % 2]}-${i}`, 2, "service", i)),
  ];
  const edges = nodes.slice(1).map((n) => edge("gateway", n.id, 2));
  const { map, groups } = groupMap({ nodes, edges }, new Set());
  expect(map.nodes.map((n) => [n.name, n.members])).toEqual([
    ["gateway", undefined],
    ["billing…", 20],
    ["search…", 20],
  ]);
  expect(map.edges.map((e) => e.rate)).toEqual([40, 40]);
  const [id] = [...groups.keys()];
  const opened = groupMap({ nodes, edges }, new Set([id as string]));
  expect(opened.map.nodes).toHaveLength(22);
});

test("nodes without a family are gathered until the map fits", () => {
  const nodes = [
    node("gateway", 1, "gateway"),
    ...Array.from({ length: 60 }, (_, i) => node(`s${String.fromCharCode(97 + (i % 26))}${i}`, 2, "service", i)),
  ];
  const { map } = groupMap({ nodes, edges: [] }, new Set());
  expect(map.nodes.length).toBeLessThanOrEqual(NODES_MAX);
});

test("the paths through a node leave out what only shares a neighbour", () => {
  const through = pathsThrough("worker.orders", shop().edges);
  expect(through.has("storefront")).toBe(true);
  expect(through.has("worker")).toBe(true);
  expect(through.has("payments")).toBe(false);
  expect(through.has("catalog")).toBe(false);
});

test("the tree shows every node once, under what leads to it", () => {
  const rows = treeOf(shop());
  const depth = Object.fromEntries(rows.map((r) => [r.node.id, r.depth]));
  expect(rows[0]?.node.id).toBe("gateway");
  expect(depth).toMatchObject({ catalog: 1, orders: 1, payments: 2, "worker.orders": 2, worker: 3 });
  expect(new Set(rows.map((r) => r.node.id)).size).toBe(rows.length);
});

test("services behind others stand behind the queues and stay there when their edges go", () => {
  const nodes = [
    node("gateway", 1, "gateway"),
    node("orders", 2),
    node("payments", 2),
    node("worker", 2),
    node("idle", 2),
    node("worker.orders", 3, "queue"),
  ];
  const edges = [
    edge("gateway", "orders"),
    edge("orders", "payments"),
    edge("orders", "worker.orders"),
    edge("worker.orders", "worker"),
  ];
  const known = new Map();
  const columns = (map: TrafficMap) => Object.fromEntries(map.nodes.map((n) => [n.id, n.column]));
  expect(columns(arrange({ nodes, edges }, known))).toEqual({
    gateway: 1,
    orders: 2,
    payments: 4,
    worker: 4,
    idle: 2,
    "worker.orders": 3,
  });
  expect(columns(arrange({ nodes, edges: [] }, known))).toMatchObject({ payments: 4, worker: 4, orders: 2 });
});

test("the queue of a direct call is told by the call's own edge until it needs a look", () => {
  const nodes = [node("gateway", 1, "gateway"), node("orders", 2), node("q", 3, "queue"), node("events", 3, "queue")];
  const edges = [edge("gateway", "orders"), edge("q", "orders"), edge("orders", "events")];
  const ids = (map: TrafficMap) => map.nodes.map((n) => n.id);
  expect(ids(arrange({ nodes, edges }, new Map()))).toEqual(["gateway", "orders", "events"]);
  const growing = nodes.map((n) => (n.id === "q" ? { ...n, tone: "warn" as const } : n));
  expect(ids(arrange({ nodes: growing, edges }, new Map()))).toContain("q");
});
