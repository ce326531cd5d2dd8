// Overview: the map left, services and what changed right, four charts below; before the first service, what to do.

import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import type { MapNode, Service, TrafficMap } from "../../api/types";
import { PageHead } from "../../frame/PageHead";
import { useLink, useMap, useServices } from "../../live/hooks";
import { plural } from "../../parts/format";
import { Empty, Outlines, Region } from "../../parts/Region";
import { Segments } from "../../parts/Segments";
import { useSpace } from "../../time/useRange";
import type { OverviewSearch } from "./search";
import "./overview.css";
import { Bands } from "./Bands";
import { EmptyOverview } from "./EmptyOverview";
import { MapView } from "./MapView";
import { arrange, type Columns } from "./mapArrange";
import { groupMap } from "./mapGroups";
import { NodePanel } from "./NodePanel";
import { needsAttention, ServiceList } from "./ServiceList";
import { TrafficTable } from "./TrafficTable";
import { TrafficTree } from "./TrafficTree";
import { WhatChanged } from "./WhatChanged";

/** What attached, as opposed to what is built in. */
export const attached = (s: Service): boolean => !s.sources.includes("built_in") && s.name !== "reactor";

export function OverviewPage() {
  const space = useSpace();
  const { list: services, ready } = useServices(space);
  const link = useLink();
  const attention = services.filter(needsAttention).length;
  if (!ready) {
    return (
      <>
        <PageHead title="Overview" />
        {link.state === "connecting" ? <Outlines /> : null}
      </>
    );
  }
  if (!services.some(attached)) {
    return (
      <>
        <PageHead title="Overview" />
        <EmptyOverview gateway={services.find((s) => s.name === "gateway")} />
      </>
    );
  }
  const meta = `${plural(services.length, "service")}${attention > 0 ? `, ${attention} ${attention === 1 ? "needs" : "need"} attention` : ""}`;
  return (
    <>
      <PageHead title="Overview" meta={meta} />
      <Full space={space} services={services} />
    </>
  );
}

const columns = new Map<string, Columns>();
function columnsOf(space: string): Columns {
  const known = columns.get(space) ?? new Map();
  columns.set(space, known);
  return known;
}

function ofSpace(map: TrafficMap, space: string): TrafficMap {
  const here = (n: MapNode) => {
    const m = /^(?:service|queue):(\S*) /.exec(n.id);
    return m ? m[1] === space : true;
  };
  const nodes = map.nodes.filter(here);
  const ids = new Set(nodes.map((n) => n.id));
  return { nodes, edges: map.edges.filter((e) => ids.has(e.from) && ids.has(e.to)) };
}

/** Map or table, and closing the groups that were opened. */
function TrafficTools() {
  const { view, open } = useSearch({ from: "/" });
  const navigate = useNavigate({ from: "/" });
  const change = (next: Partial<OverviewSearch>) =>
    void navigate({ search: (s) => ({ ...s, ...next }), replace: true });
  return (
    <>
      {open ? (
        <button type="button" className="btn sm" onClick={() => change({ open: undefined })}>
          Close groups
        </button>
      ) : null}
      <Segments
        label="View"
        value={view ?? "map"}
        options={[
          ["map", "Map"],
          ["table", "Table"],
        ]}
        onChange={(v) => change({ view: v === "table" ? "table" : undefined })}
      />
    </>
  );
}

function Full({ space, services }: { space: string; services: readonly Service[] }) {
  const { map: whole, ready } = useMap();
  const { view, node, open } = useSearch({ from: "/" });
  const navigate = useNavigate({ from: "/" });
  const { map, groups } = useMemo(
    () => groupMap(arrange(ofSpace(whole, space), columnsOf(space)), new Set(open?.split(",") ?? [])),
    [whole, space, open],
  );
  const show = (id: string | undefined) => void navigate({ search: (s) => ({ ...s, node: id }) });
  const expand = (id: string) =>
    void navigate({ search: (s) => ({ ...s, node: undefined, open: [open, id].filter(Boolean).join(",") }) });
  const none = (
    <Empty title="No traffic yet">
      Calls through the gateway, events and their queues are drawn here as they flow.
    </Empty>
  );
  return (
    <div className={`overview${node ? " with-side" : ""}`}>
      <Region title="Traffic" count="last 10 s: rate, errors, p95" tools={<TrafficTools />} className="traffic-large">
        {view === "table" ? (
          <TrafficTable map={map} selected={node} onOpen={show} />
        ) : ready && map.nodes.length === 0 ? (
          none
        ) : (
          <MapView space={space} map={map} selected={node} onOpen={(id) => show(id === node ? undefined : id)} />
        )}
      </Region>
      <Region title="Traffic" count="last 10 s" className="traffic-small line-bottom">
        <TrafficTree map={map} />
      </Region>
      {node ? (
        <NodePanel
          id={node}
          map={map}
          members={groups.get(node)}
          services={services}
          onOpen={show}
          onExpand={expand}
          close={() => show(undefined)}
        />
      ) : (
        <aside className="aside line-left" aria-label="Services and changes">
          <ServiceList services={services} />
          <WhatChanged />
        </aside>
      )}
      <Bands />
    </div>
  );
}
