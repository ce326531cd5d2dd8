import { useMemo } from "react";
import type { Connection } from "../../api/types";
import type { Listed } from "../../live/hooks";
import { Bytes } from "../../parts/Bytes";
import { plural } from "../../parts/format";
import { Pill, ServiceName } from "../../parts/marks";
import { Num } from "../../parts/Num";
import { Empty, NoMatch, Outlines } from "../../parts/Region";
import { type Column, Table } from "../../parts/Table";
import { Since } from "../../parts/Time";
import type { Change } from "./QueuesPage";
import type { QueuesSearch } from "./search";

const quietBytes = (v: number) => (v < 1 ? <span className="meta">0 B</span> : <Bytes value={v} />);

const COLUMNS: Column<Connection>[] = [
  {
    id: "name",
    head: "Connection",
    narrow: "rest",
    sort: (c) => c.name,
    title: (c) => c.name,
    cell: (c) => <span className="mono">{c.name}</span>,
  },
  {
    id: "service",
    head: "Service",
    width: 130,
    sort: (c) => c.service,
    cell: (c) => (c.service ? <ServiceName name={c.service} /> : <span className="meta">–</span>),
  },
  { id: "user", head: "User", width: 110, sort: (c) => c.user, cell: (c) => <span className="mono">{c.user}</span> },
  {
    id: "peer",
    broad: true,
    head: "Peer",
    width: 150,
    sort: (c) => c.peer,
    title: (c) => c.peer,
    cell: (c) => <span className="mono dim">{c.peer}</span>,
  },
  {
    id: "client",
    broad: true,
    head: "Client",
    width: 170,
    sort: (c) => c.client,
    title: (c) => `${c.client}, ${c.protocol}`,
    cell: (c) => <span className="meta">{c.client || c.protocol}</span>,
  },
  {
    id: "channels",
    broad: true,
    head: "Channels",
    num: true,
    width: 78,
    sort: (c) => c.channels,
    cell: (c) => <Num value={c.channels} />,
  },
  {
    id: "consumers",
    head: "Consumers",
    num: true,
    width: 88,
    sort: (c) => c.consumers,
    cell: (c) => (c.consumers === 0 ? <span className="meta">0</span> : <Num value={c.consumers} />),
  },
  {
    id: "in",
    head: "In, /s",
    num: true,
    width: 86,
    narrow: 76,
    sort: (c) => c.in_bytes_rate,
    cell: (c) => quietBytes(c.in_bytes_rate),
  },
  {
    id: "out",
    head: "Out, /s",
    num: true,
    width: 86,
    narrow: 76,
    sort: (c) => c.out_bytes_rate,
    cell: (c) => quietBytes(c.out_bytes_rate),
  },
  {
    id: "since",
    broad: true,
    head: "Connected",
    num: true,
    width: 100,
    sort: (c) => -c.since_us,
    cell: (c) => (
      <span className="dim">
        <Since at={c.since_us} />
      </span>
    ),
  },
  { id: "state", head: "", width: 84, cell: (c) => (c.blocked ? <Pill tone="warn">blocked</Pill> : null) },
];

interface ConnectionsTableProps {
  rows: Listed<Connection>;
  q: string;
  search: QueuesSearch;
  change: Change;
}

export function ConnectionsTable({ rows, q, search, change }: ConnectionsTableProps) {
  const shown = useMemo(
    () =>
      rows.list.filter((c) =>
        [c.name, c.user, c.peer, c.client, c.service ?? ""].some((text) => text.toLowerCase().includes(q)),
      ),
    [rows.list, q],
  );
  if (!rows.ready) return <Outlines />;
  if (rows.list.length === 0)
    return (
      <Empty title="No connections">
        Programs that connect over AMQP stand here with their channels, consumers and traffic.
      </Empty>
    );
  if (shown.length === 0)
    return <NoMatch where="this filter" outside={`${plural(rows.list.length, "connection")} outside it.`} />;
  return (
    <Table
      label="Connections"
      rows={shown}
      columns={COLUMNS}
      keyOf={(c) => String(c.id)}
      sort={search.sort}
      onSort={(sort) => change({ sort }, true)}
      cols={search.cols}
      onCols={(cols) => change({ cols }, true)}
    />
  );
}
