// What the map knows of one node: its values, what it calls and what calls it, and the ways on.

import { Link } from "@tanstack/react-router";
import type { MapEdge, MapNode, Service, TrafficMap } from "../../api/types";
import { Bytes } from "../../parts/Bytes";
import { plural } from "../../parts/format";
import { MiddleCut } from "../../parts/MiddleCut";
import { Rods, ServiceName, StateMark, stateTone } from "../../parts/marks";
import { Num } from "../../parts/Num";
import { Facts, SectionHead, SidePanel } from "../../parts/SidePanel";
import { type Column, Table } from "../../parts/Table";
import { Duration, Since } from "../../parts/Time";

interface NodePanelProps {
  id: string;
  map: TrafficMap;
  /** Members when the node is a group. */
  members: readonly MapNode[] | undefined;
  services: readonly Service[];
  onOpen: (id: string) => void;
  onExpand: (id: string) => void;
  close: () => void;
}

export function NodePanel({ id, map, members, services, onOpen, onExpand, close }: NodePanelProps) {
  const node = map.nodes.find((n) => n.id === id);
  const name = node?.name ?? id.split(" ").at(-1) ?? id;
  const service =
    node?.kind === "service" || node?.kind === "gateway" ? services.find((s) => s.name === node.name) : undefined;
  const title = service ? (
    <ServiceName name={service.name} slot={service.slot} link={false} />
  ) : node?.kind === "queue" ? (
    <MiddleCut text={name} />
  ) : (
    name
  );
  return (
    <SidePanel
      label={name}
      title={title}
      tools={<PanelLinks node={node} service={service} />}
      close={close}
      width={352}
    >
      {node ? null : <p className="note meta">No traffic in the last 10 s.</p>}
      {node ? <NodeFacts node={node} service={service} /> : null}
      {members ? (
        <>
          <SectionHead title="Members" note={members.length} />
          <p className="note">
            {members
              .slice(0, 12)
              .map((m) => m.name)
              .join(", ")}
            {members.length > 12 ? ` and ${members.length - 12} more` : ""}
          </p>
          <p className="note">
            <button type="button" className="btn sm" onClick={() => onExpand(id)}>
              Open in the map
            </button>
          </p>
        </>
      ) : null}
      <Edges
        title="Called by"
        edges={map.edges.filter((e) => e.to === id)}
        end={(e) => e.from}
        map={map}
        onOpen={onOpen}
      />
      <Edges title="Calls" edges={map.edges.filter((e) => e.from === id)} end={(e) => e.to} map={map} onOpen={onOpen} />
    </SidePanel>
  );
}

function PanelLinks({ node, service }: { node: MapNode | undefined; service: Service | undefined }) {
  if (service) {
    return (
      <Link className="btn sm" to="/services" search={{ service: service.name }}>
        Open
      </Link>
    );
  }
  if (node?.kind !== "queue") return null;
  return (
    <Link
      className="btn sm"
      to="/queues/$queueSpace/$queueName"
      params={{ queueSpace: node.id.slice(6).split(" ")[0] as string, queueName: node.name }}
    >
      Open
    </Link>
  );
}

function NodeFacts({ node, service }: { node: MapNode; service: Service | undefined }) {
  const { queue } = node;
  return (
    <>
      <Facts
        plain
        rows={[
          node.state
            ? [
                "State",
                <StateMark
                  key="s"
                  state={node.state}
                  words={<span className={stateTone(node.state)}>{service?.reason || node.state}</span>}
                />,
              ]
            : null,
          node.instances.length > 0
            ? [
                "Instances",
                <span key="i" className="flex">
                  <Rods states={node.instances} />
                  {node.instances.length}
                </span>,
              ]
            : null,
          queue ? ["Ready", <Num key="q" value={queue.ready} tone={node.tone} />] : null,
          queue ? ["Unacked", <Num key="u" value={queue.unacked} />] : null,
          queue ? ["Wait p95", <Duration key="w" ns={queue.wait_ns} tone={node.tone} />] : null,
          node.rate !== null ? ["Rate", <Num key="r" value={node.rate} as="rate" />] : null,
          node.error_share !== null
            ? [
                "Errors",
                <Num key="e" value={node.error_share} as="share" tone={node.tone === "err" ? "err" : "normal"} />,
              ]
            : null,
          node.p95_ns !== null
            ? ["p95", <Duration key="p" ns={node.p95_ns} tone={node.tone === "warn" ? "warn" : "normal"} />]
            : null,
          service?.route
            ? [
                "Route",
                <span key="o" className="mono">
                  {service.route}/*
                </span>,
              ]
            : null,
          service?.memory_bytes ? ["Memory", <Bytes key="m" value={service.memory_bytes} />] : null,
          service?.since_us ? ["Up for", <Since key="t" at={service.since_us} />] : null,
          service?.left_us ? ["Gone for", <Since key="l" at={service.left_us} />] : null,
        ]}
      />
      {service ? (
        <p className="note">
          <Link className="link" to="/logs" search={{ q: `service:${service.name}` }}>
            Logs
          </Link>
          <Link className="link" to="/traces" search={{ q: `service:${service.name}` }}>
            Traces
          </Link>
        </p>
      ) : null}
    </>
  );
}

interface EdgesProps {
  title: string;
  edges: readonly MapEdge[];
  end: (e: MapEdge) => string;
  map: TrafficMap;
  onOpen: (id: string) => void;
}

function Edges({ title, edges, end, map, onOpen }: EdgesProps) {
  if (edges.length === 0) return null;
  const nameOf = (e: MapEdge) => map.nodes.find((n) => n.id === end(e));
  const columns: Column<MapEdge>[] = [
    {
      id: "name",
      head: title,
      narrow: true,
      cell: (e) => {
        const n = nameOf(e);
        return n?.kind === "service" || n?.kind === "gateway" ? (
          <ServiceName name={n.name} slot={n.slot} link={false} />
        ) : n?.kind === "queue" ? (
          <MiddleCut text={n.name} />
        ) : (
          (n?.name ?? end(e))
        );
      },
    },
    { id: "rate", head: "/s", num: true, width: 56, narrow: true, cell: (e) => <Num value={e.rate} as="rateCell" /> },
    {
      id: "errors",
      head: "Error",
      num: true,
      width: 62,
      narrow: true,
      cell: (e) => <Num value={e.error_share} as="share" tone={e.tone === "err" ? "err" : "normal"} />,
    },
    {
      id: "p95",
      head: "p95",
      num: true,
      width: 80,
      narrow: true,
      cell: (e) => <Duration ns={e.p95_ns || null} tone={e.tone === "warn" ? "warn" : "normal"} />,
    },
  ];
  return (
    <section aria-label={`${title}, ${plural(edges.length, "edge")}`} className="line-top">
      <Table label={title} rows={edges} columns={columns} keyOf={end} grows onOpen={(e) => onOpen(end(e))} />
    </section>
  );
}
