// Services at the right of the overview: state, instances, rate, errors, p95.

import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Service } from "../../api/types";
import { count } from "../../parts/format";
import { Rods, ServiceName, StateMark } from "../../parts/marks";
import { Num } from "../../parts/Num";
import { Region } from "../../parts/Region";
import { Spark } from "../../parts/Spark";
import { type Column, Table } from "../../parts/Table";
import { Duration } from "../../parts/Time";

const ATTENTION = new Set<Service["state"]>(["failing", "degraded"]);
export const needsAttention = (s: Service): boolean => ATTENTION.has(s.state);

/** The colour of a value by the server's tone: err on the errors, warn on the latency. */
export const errorTone = (s: Pick<Service, "tone" | "error_share">) =>
  s.tone === "err" && s.error_share ? "err" : "normal";
export const latencyTone = (s: Pick<Service, "tone">) => (s.tone === "warn" ? "warn" : "normal");

const COLUMNS: Column<Service>[] = [
  {
    id: "service",
    head: "Service",
    width: 112,
    narrow: true,
    cell: (s) => (
      <span className="state" title={s.reason || undefined}>
        <StateMark state={s.state} />
        <ServiceName name={s.name} slot={s.slot} />
      </span>
    ),
  },
  {
    id: "instances",
    head: "",
    width: 30,
    narrow: true,
    className: "clip",
    cell: (s) => <Rods states={s.instances.map((i) => i.state)} />,
  },
  { id: "spark", head: "Rate", width: 52, cell: (s) => <Spark values={s.rate_spark} /> },
  { id: "rate", head: "/s", num: true, width: 38, narrow: true, cell: (s) => <Num value={s.rate} as="rateCell" /> },
  {
    id: "errors",
    head: "Error",
    num: true,
    width: 46,
    narrow: true,
    cell: (s) => <Num value={s.error_share} as="share" tone={errorTone(s)} />,
  },
  {
    id: "p95",
    head: "p95",
    num: true,
    narrow: true,
    cell: (s) => <Duration ns={s.p95_ns} tone={latencyTone(s)} short />,
  },
];

export function ServiceList({ services }: { services: readonly Service[] }) {
  const navigate = useNavigate();
  const rows = useMemo(() => [...services], [services]);
  return (
    <Region
      title="Services"
      count={count(rows.length)}
      tools={<Link to="/services">All services</Link>}
      className="service-list"
    >
      <Table
        label="Services"
        rows={rows}
        columns={COLUMNS}
        keyOf={(s) => s.name}
        onOpen={(s) => void navigate({ to: "/services", search: { service: s.name } })}
      />
    </Region>
  );
}
