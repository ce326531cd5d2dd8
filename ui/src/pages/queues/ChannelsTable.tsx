import { useNavigate } from "@tanstack/react-router";
import type { Channel } from "../../api/types";
import { useList } from "../../live/useList";
import { ServiceName } from "../../parts/marks";
import { Num } from "../../parts/Num";
import { Empty } from "../../parts/Region";
import type { Column } from "../../parts/Table";
import { LongTable } from "./LongTable";
import { ConnectionName } from "./links";
import type { Change } from "./QueuesPage";
import type { QueuesSearch } from "./search";

const quiet = (v: number) => (v === 0 ? <span className="meta">0</span> : <Num value={v} />);

export const CHANNEL_COLUMNS: Column<Channel>[] = [
  {
    id: "number",
    head: "Channel",
    num: true,
    width: 84,
    narrow: 76,
    sort: (c) => c.number,
    cell: (c) => <Num value={c.number} />,
  },
  {
    id: "name",
    head: "Connection",
    narrow: "rest",
    sort: (c) => c.connection,
    cell: (c) => <ConnectionName id={c.connection_id} name={c.connection} />,
  },
  {
    id: "service",
    head: "Service",
    width: 140,
    sort: (c) => c.service,
    cell: (c) => (c.service ? <ServiceName name={c.service} /> : <span className="meta">–</span>),
  },
  { id: "user", head: "User", width: 120, sort: (c) => c.user, cell: (c) => <span className="mono">{c.user}</span> },
  { id: "mode", head: "Mode", width: 110, cell: (c) => <span className="meta">{c.confirms ? "confirms" : ""}</span> },
  {
    id: "consumers",
    head: "Consumers",
    num: true,
    width: 90,
    sort: (c) => c.consumers,
    cell: (c) => quiet(c.consumers),
  },
  {
    id: "unacked",
    head: "Unacked",
    num: true,
    width: 84,
    narrow: 76,
    sort: (c) => c.unacked,
    cell: (c) => quiet(c.unacked),
  },
  {
    id: "prefetch",
    head: "Prefetch of channel",
    num: true,
    width: 136,
    sort: (c) => c.prefetch_global,
    cell: (c) => (c.prefetch_global === 0 ? <span className="meta">no limit</span> : <Num value={c.prefetch_global} />),
  },
];

export const channelKey = (c: Channel) => `${c.connection_id} ${c.number}`;

export function ChannelsTable({ space, search, change }: { space: string; search: QueuesSearch; change: Change }) {
  const navigate = useNavigate();
  const list = useList<Channel>("channels", { space, q: search.q, sort: search.sort }, channelKey);
  return (
    <LongTable
      what="channel"
      list={list}
      columns={CHANNEL_COLUMNS}
      keyOf={channelKey}
      search={search}
      change={change}
      onOpen={(c) =>
        void navigate({ to: "/queues/-/connections/$connectionId", params: { connectionId: String(c.connection_id) } })
      }
      empty={
        <Empty title="No channels">
          Each connection opens channels to publish and consume on. Open them once and keep them: a channel for every
          message costs a round trip each.
        </Empty>
      }
    />
  );
}
