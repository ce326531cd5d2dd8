// The table of services: state in words, instances, how it is here, route, rate, errors, latency, process, last line.

import { type ReactNode, useMemo } from "react";
import type { Service } from "../../api/types";
import { Bytes } from "../../parts/Bytes";
import { duration, share } from "../../parts/format";
import { MiddleCut } from "../../parts/MiddleCut";
import { Rods, ServiceName, StateMark, stateTone } from "../../parts/marks";
import { Num, Unknown } from "../../parts/Num";
import { Spark } from "../../parts/Spark";
import { type Column, Table } from "../../parts/Table";
import { Duration, Since } from "../../parts/Time";
import { errorTone, latencyTone } from "../overview/ServiceList";
import { Commands } from "./Commands";
import { how, instanceKey, isOpen, restartTone, type ServiceRow, serviceKey, stateWords } from "./rows";

const of = (r: ServiceRow) => r.instance ?? r.service;
const dash = <Unknown />;

/** How long a service that nothing defines is gone: then it is soon forgotten. One that is bound waits for somebody. */
function leftWords({ service, instance }: ServiceRow): ReactNode {
  if (instance || !service.left_us) return null;
  const silent = service.sources.every((source) => source === "telemetry");
  return (
    <>
      {silent ? "Silent for " : "Left "}
      <Since at={service.left_us} suffix={silent ? "" : " ago"} />
    </>
  );
}

export const COLUMNS: Column<ServiceRow>[] = [
  {
    id: "service",
    head: "Service",
    width: 126,
    narrow: true,
    sort: (r) => r.service.name,
    title: (r) => of(r).name,
    cell: (r) =>
      r.instance ? (
        <span className="indent">
          <MiddleCut text={r.instance.name} />
        </span>
      ) : (
        <ServiceName name={r.service.name} slot={r.service.slot} />
      ),
  },
  {
    id: "state",
    head: "State",
    width: 194,
    narrow: "rest",
    sort: (r) => r.service.state,
    title: (r) => stateWords(of(r)),
    cell: (r) => (
      <StateMark
        state={of(r).state}
        words={<span className={`cut ${stateTone(of(r).state)}`}>{leftWords(r) ?? stateWords(of(r))}</span>}
      />
    ),
  },
  {
    id: "up",
    head: "Up",
    width: 44,
    className: "clip",
    cell: (r) => (r.instance ? null : <Rods states={r.service.instances.map((i) => i.state)} />),
    sort: (r) => r.service.instances.length,
  },
  {
    id: "how",
    broad: true,
    head: "How",
    width: 88,
    sort: (r) => how(r.service),
    title: (r) => (r.instance ? undefined : how(r.service)),
    cell: (r) => (
      <span className="meta">
        {r.instance
          ? r.instance.pid === null
            ? how({ sources: [r.instance.source] })
            : `pid ${r.instance.pid}`
          : how(r.service)}
      </span>
    ),
  },
  {
    id: "route",
    head: "Route",
    width: 98,
    sort: (r) => r.service.route,
    title: (r) => (r.instance ? (r.instance.http ?? undefined) : (r.service.route ?? undefined)),
    cell: (r) =>
      r.instance ? (
        r.instance.http ? (
          <span className="mono">{r.instance.http.replace(/^.*(:\d+).*$/, "$1")}</span>
        ) : (
          dash
        )
      ) : r.service.route ? (
        <MiddleCut text={r.service.route.replace(/\/?$/, "/*")} />
      ) : (
        dash
      ),
  },
  {
    id: "rate",
    head: "/s",
    num: true,
    width: 48,
    narrow: true,
    sort: (r) => r.service.rate,
    cell: (r) => (r.instance ? dash : <Num value={r.service.rate} as="rateCell" />),
  },
  {
    id: "errors",
    head: "Error",
    num: true,
    width: 54,
    sort: (r) => r.service.error_share,
    cell: (r) => (r.instance ? dash : <Num value={r.service.error_share} as="share" tone={errorTone(r.service)} />),
  },
  {
    id: "p95",
    head: "p95",
    num: true,
    width: 64,
    narrow: 78,
    sort: (r) => r.service.p95_ns,
    title: (r) =>
      r.instance || r.service.p95_ns === null
        ? undefined
        : `p50 ${duration(r.service.p50_ns)}, p95 ${duration(r.service.p95_ns)}`,
    cell: (r) => (r.instance ? dash : <Duration ns={r.service.p95_ns} tone={latencyTone(r.service)} short />),
  },
  {
    id: "latency",
    broad: true,
    head: "Latency",
    width: 68,
    cell: (r) => (r.instance ? null : <Spark values={r.service.latency_spark} width={52} />),
  },
  {
    id: "cpu",
    broad: true,
    head: "CPU",
    num: true,
    width: 60,
    sort: (r) => r.service.cpu_share,
    title: (r) => (of(r).cpu_share === null ? undefined : `${share(of(r).cpu_share)} of one core`),
    cell: (r) => <Num value={of(r).cpu_share} as="share" tone={(of(r).cpu_share ?? 0) >= 0.95 ? "warn" : "normal"} />,
  },
  {
    id: "memory",
    head: "Memory",
    num: true,
    width: 72,
    sort: (r) => r.service.memory_bytes,
    cell: (r) => <Bytes value={of(r).memory_bytes} />,
  },
  {
    id: "since",
    head: "Up for",
    num: true,
    width: 88,
    sort: (r) => r.service.since_us,
    cell: (r) =>
      of(r).state === "ready" || of(r).state === "degraded" ? (
        <span className="dim">
          <Since at={of(r).since_us} />
        </span>
      ) : (
        dash
      ),
  },
  {
    id: "restarts",
    broad: true,
    head: "Restarts",
    num: true,
    width: 66,
    sort: (r) => r.service.restart_count,
    cell: (r) =>
      of(r).restart_count === 0 ? (
        <span className="meta">0</span>
      ) : (
        <Num value={of(r).restart_count} tone={restartTone(of(r).restart_count)} />
      ),
  },
  {
    id: "last",
    broad: true,
    head: "Last line",
    title: (r) => (r.instance ? undefined : (r.service.last_line ?? undefined)),
    className: "with-actions",
    cell: (r) => (
      <>
        {r.instance ? null : <span className="mono dim">{r.service.last_line ?? ""}</span>}
        {r.service.owned ? (
          <span className="row-actions">
            <Commands service={r.service} instance={r.instance} />
          </span>
        ) : null}
      </>
    ),
  },
];

interface ServicesTableProps {
  services: readonly Service[];
  chosen: string | undefined;
  instance: string | undefined;
  sort: string | undefined;
  onSort: (sort: string | undefined) => void;
  cols: string | undefined;
  onCols: (cols: string | undefined) => void;
  onOpen: (row: ServiceRow) => void;
}

export function ServicesTable({ services, chosen, instance, sort, onSort, cols, onCols, onOpen }: ServicesTableProps) {
  const rows = useMemo<ServiceRow[]>(
    () => services.map((service) => ({ key: serviceKey(service), service, instance: null })),
    [services],
  );
  const childrenOf = useMemo(
    () => (r: ServiceRow) =>
      isOpen(r.service, chosen)
        ? r.service.instances.map((i) => ({ key: instanceKey(r.service, i), service: r.service, instance: i }))
        : [],
    [chosen],
  );
  const selected = useMemo(() => {
    const service = services.find((s) => s.name === chosen);
    const one = service?.instances.find((i) => i.name === instance);
    return service ? (one ? instanceKey(service, one) : serviceKey(service)) : null;
  }, [services, chosen, instance]);
  return (
    <Table
      label="Services"
      rows={rows}
      columns={COLUMNS}
      keyOf={(r) => r.key}
      childrenOf={childrenOf}
      sort={sort}
      onSort={onSort}
      cols={cols}
      onCols={onCols}
      selected={selected}
      onOpen={onOpen}
    />
  );
}
