// The map as a table: one row an edge, and the nodes that nothing reaches. It is what screen readers get.

import { useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import type { MapEdge, MapNode, TrafficMap } from "../../api/types";
import { MiddleCut } from "../../parts/MiddleCut";
import { ServiceName, StateMark } from "../../parts/marks";
import { Num } from "../../parts/Num";
import { Empty } from "../../parts/Region";
import { type Column, Table } from "../../parts/Table";
import { Duration, Time } from "../../parts/Time";

interface Row {
  id: string;
  from: MapNode | undefined;
  to: MapNode | undefined;
  edge: MapEdge | null;
}

function NodeCell({ node }: { node: MapNode | undefined }) {
  if (!node) return <span className="meta">–</span>;
  if (node.kind === "service" || node.kind === "gateway") {
    return (
      <span className="state">
        {node.state ? <StateMark state={node.state} /> : null}
        <ServiceName name={node.name} slot={node.slot} link={!node.id.startsWith("group:")} />
      </span>
    );
  }
  return (
    <>
      {node.kind === "queue" ? <MiddleCut text={node.name} /> : node.name} <span className="meta">{node.kind}</span>
    </>
  );
}

const COLUMNS: Column<Row>[] = [
  { id: "from", head: "From", cell: (r) => <NodeCell node={r.from} />, sort: (r) => r.from?.name, narrow: true },
  { id: "to", head: "To", cell: (r) => <NodeCell node={r.to} />, sort: (r) => r.to?.name, narrow: true },
  {
    id: "rate",
    head: "/s",
    num: true,
    width: 72,
    narrow: true,
    cell: (r) => <Num value={r.edge?.rate} as="rateCell" />,
    sort: (r) => r.edge?.rate,
  },
  {
    id: "errors",
    head: "Error",
    num: true,
    width: 80,
    cell: (r) => <Num value={r.edge?.error_share} as="share" tone={r.edge?.tone === "err" ? "err" : "normal"} />,
    sort: (r) => r.edge?.error_share,
  },
  {
    id: "p95",
    head: "p95",
    num: true,
    width: 88,
    cell: (r) => <Duration ns={r.edge?.p95_ns || null} tone={r.edge?.tone === "warn" ? "warn" : "normal"} />,
    sort: (r) => r.edge?.p95_ns || null,
  },
  {
    id: "last",
    head: "Last seen",
    num: true,
    width: 96,
    cell: (r) => <span className="dim">{r.edge ? <Time at={r.edge.last_us} /> : "–"}</span>,
    sort: (r) => r.edge?.last_us,
  },
];

export function TrafficTable({
  map,
  selected,
  onOpen,
}: {
  map: TrafficMap;
  selected: string | undefined;
  onOpen: (id: string) => void;
}) {
  const navigate = useNavigate();
  const rows = useMemo(() => {
    const byId = new Map(map.nodes.map((n) => [n.id, n]));
    const reached = new Set(map.edges.flatMap((e) => [e.from, e.to]));
    const edges = map.edges.map((edge) => ({
      id: `${edge.from} > ${edge.to}`,
      from: byId.get(edge.from),
      to: byId.get(edge.to),
      edge,
    }));
    const alone = map.nodes
      .filter((n) => !reached.has(n.id))
      .map((n) => ({ id: n.id, from: undefined, to: n, edge: null }));
    return [...edges, ...alone].sort((a, b) => (b.edge?.rate ?? -1) - (a.edge?.rate ?? -1) || (a.id < b.id ? -1 : 1));
  }, [map]);
  if (rows.length === 0)
    return (
      <Empty title="No traffic in the last 10 s">Calls, events and their queues are listed here while they flow.</Empty>
    );
  return (
    <Table
      label="Traffic"
      rows={rows}
      columns={COLUMNS}
      keyOf={(r) => r.id}
      selected={rows.find((r) => r.to?.id === selected)?.id}
      onOpen={(r) => {
        const node = r.to ?? r.from;
        if (node?.kind === "queue")
          void navigate({
            to: "/queues/$queueSpace/$queueName",
            params: { queueSpace: node.id.slice(6).split(" ")[0] as string, queueName: node.name },
          });
        else if (node) onOpen(node.id);
      }}
    />
  );
}
