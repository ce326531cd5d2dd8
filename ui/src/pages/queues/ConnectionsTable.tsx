import { Link, useNavigate } from "@tanstack/react-router";
import type { Connection } from "../../api/types";
import { useList } from "../../live/useList";
import { Bytes } from "../../parts/Bytes";
import { Pill, ServiceName } from "../../parts/marks";
import { Num } from "../../parts/Num";
import { Empty } from "../../parts/Region";
import type { Column } from "../../parts/Table";
import { Since } from "../../parts/Time";
import { LongTable } from "./LongTable";
import { ConnectionLabel } from "./links";
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
    cell: (c) => <ConnectionLabel name={c.name} />,
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

const keyOf = (c: Connection) => String(c.id);

export function ConnectionsTable({ space, search, change }: { space: string; search: QueuesSearch; change: Change }) {
  const navigate = useNavigate();
  const list = useList<Connection>("connections/page", { space, q: search.q, sort: search.sort }, keyOf);
  return (
    <LongTable
      what="connection"
      list={list}
      columns={COLUMNS}
      keyOf={keyOf}
      search={search}
      change={change}
      onOpen={(c) =>
        void navigate({ to: "/queues/-/connections/$connectionId", params: { connectionId: String(c.id) } })
      }
      empty={
        <Empty title="No connections">
          Programs that connect over AMQP stand here with their channels, consumers and traffic. Their address is{" "}
          <code>AMQP_URL</code>, which <Link to="/settings">Settings</Link> shows ready to paste.
        </Empty>
      }
    />
  );
}
