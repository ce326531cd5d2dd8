import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { get, problemFrom } from "../../api/client";
import type { Binding, Exchange } from "../../api/types";
import type { Listed } from "../../live/hooks";
import { plural } from "../../parts/format";
import { Num } from "../../parts/Num";
import { Empty, Fault, NoMatch, Outlines } from "../../parts/Region";
import { Facts, SectionHead, SidePanel } from "../../parts/SidePanel";
import { type Column, Table } from "../../parts/Table";
import type { Change } from "./QueuesPage";
import type { QueuesSearch } from "./search";

export const exchangeName = (name: string): string => name || "(default)";
const quiet = (v: number) => (v === 0 ? <span className="meta">0</span> : <Num value={v} as="rateCell" />);

const COLUMNS: Column<Exchange>[] = [
  {
    id: "name",
    head: "Exchange",
    narrow: "rest",
    sort: (e) => e.name,
    title: (e) => exchangeName(e.name),
    cell: (e) => <span className={`mono${e.name ? "" : " meta"}`}>{exchangeName(e.name)}</span>,
  },
  { id: "kind", head: "Type", width: 120, narrow: 76, sort: (e) => e.kind, cell: (e) => e.kind },
  {
    id: "features",
    head: "Features",
    width: 220,
    cell: (e) => (
      <span className="meta">
        {[e.durable ? "durable" : "transient", e.auto_delete ? "auto-delete" : "", e.internal ? "internal" : ""]
          .filter(Boolean)
          .join(", ")}
      </span>
    ),
  },
  {
    id: "bindings",
    head: "Bindings",
    num: true,
    width: 90,
    sort: (e) => e.bindings,
    cell: (e) => (e.bindings === 0 ? <span className="meta">0</span> : <Num value={e.bindings} />),
  },
  { id: "in", head: "In, /s", num: true, width: 90, narrow: 64, sort: (e) => e.in_rate, cell: (e) => quiet(e.in_rate) },
  { id: "out", head: "Out, /s", num: true, width: 90, sort: (e) => e.out_rate, cell: (e) => quiet(e.out_rate) },
];

interface ExchangesTableProps {
  rows: Listed<Exchange>;
  space: string;
  q: string;
  search: QueuesSearch;
  change: Change;
}

export function ExchangesTable({ rows, space, q, search, change }: ExchangesTableProps) {
  const [open, setOpen] = useState<string | null>(null);
  const shown = useMemo(() => rows.list.filter((x) => exchangeName(x.name).toLowerCase().includes(q)), [rows.list, q]);
  const chosen = rows.list.find((x) => x.name === open);
  if (!rows.ready) return <Outlines />;
  if (shown.length === 0)
    return <NoMatch where="this filter" outside={`${plural(rows.list.length, "exchange")} outside it.`} />;
  return (
    <div className="with-panel">
      <Table
        label="Exchanges"
        rows={shown}
        columns={COLUMNS}
        keyOf={(x) => x.name}
        sort={search.sort}
        onSort={(sort) => change({ sort }, true)}
        selected={open}
        onOpen={(x) => setOpen(x.name === open ? null : x.name)}
      />
      {chosen ? <ExchangePanel exchange={chosen} space={space} close={() => setOpen(null)} /> : null}
    </div>
  );
}

const BINDING_COLUMNS: Column<Binding>[] = [
  {
    id: "key",
    head: "Key",
    narrow: true,
    title: (b) => b.routing_key,
    cell: (b) => <span className="mono">{b.routing_key || <span className="meta">(empty)</span>}</span>,
  },
];

function ExchangePanel({ exchange, space, close }: { exchange: Exchange; space: string; close: () => void }) {
  const { data, error, refetch } = useQuery({
    queryKey: ["bindings", space, exchange.name, exchange.bindings],
    queryFn: ({ signal }) =>
      get<Binding[]>(
        `bindings?source=${encodeURIComponent(exchange.name)}&space=${encodeURIComponent(space)}`,
        {},
        signal,
      ),
  });
  const columns: Column<Binding>[] = [
    {
      id: "destination",
      head: "Leads to",
      narrow: true,
      title: (b) => b.destination,
      cell: (b) =>
        b.destination_type === "queue" ? (
          <Link
            className="mono"
            to="/queues/$queueSpace/$queueName"
            params={{ queueSpace: space, queueName: b.destination }}
          >
            {b.destination}
          </Link>
        ) : (
          <span className="mono">
            {b.destination} <span className="meta">exchange</span>
          </span>
        ),
    },
    ...BINDING_COLUMNS,
  ];
  return (
    <SidePanel
      label={`Exchange ${exchangeName(exchange.name)}`}
      title={<span className="mono">{exchangeName(exchange.name)}</span>}
      close={close}
    >
      <Facts
        plain
        rows={[
          ["Type", exchange.kind],
          ["Durable", exchange.durable ? "yes" : "no"],
          ["In", <Num key="i" value={exchange.in_rate} as="rate" />],
          ["Out", <Num key="o" value={exchange.out_rate} as="rate" />],
        ]}
      />
      <SectionHead title="Bindings" note={exchange.bindings} />
      {error ? <Fault problem={problemFrom(error)} retry={() => void refetch()} /> : null}
      {data && data.length > 0 ? (
        <Table
          label="Bindings"
          rows={data}
          columns={columns}
          keyOf={(b) => `${b.destination_type} ${b.destination} ${b.routing_key} ${JSON.stringify(b.arguments)}`}
          grows
        />
      ) : null}
      {data && data.length === 0 ? (
        <Empty title={exchange.name === "" ? "Reaches every queue by its name" : "Nothing is bound"}>
          {exchange.name === "" ? null : "Messages published here are dropped, or returned when mandatory."}
        </Empty>
      ) : null}
    </SidePanel>
  );
}
