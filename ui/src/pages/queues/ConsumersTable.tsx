import { useNavigate } from "@tanstack/react-router";
import type { Consumer } from "../../api/types";
import { useList } from "../../live/useList";
import { ServiceName } from "../../parts/marks";
import { Num } from "../../parts/Num";
import { Empty } from "../../parts/Region";
import type { Column } from "../../parts/Table";
import { Duration } from "../../parts/Time";
import { LongTable } from "./LongTable";
import { ConnectionName, QueueName } from "./links";
import type { Change } from "./QueuesPage";
import { LONG_HELD_NS } from "./queue";
import type { QueuesSearch } from "./search";

const consumer: Column<Consumer> = {
  id: "name",
  head: "Consumer",
  narrow: "rest",
  sort: (c) => c.connection,
  title: (c) => c.connection,
  cell: (c) => (
    <>
      {c.service && c.service !== c.connection ? (
        <>
          <ServiceName name={c.service} />{" "}
        </>
      ) : null}
      <ConnectionName id={c.connection_id} name={c.connection} />
    </>
  ),
};
const queue: Column<Consumer> = {
  id: "queue",
  head: "Queue",
  width: 220,
  sort: (c) => c.queue,
  cell: (c) => <QueueName space={c.space} name={c.queue} />,
};
const REST: Column<Consumer>[] = [
  {
    id: "tag",
    head: "Tag",
    width: 190,
    sort: (c) => c.tag,
    title: (c) => c.tag,
    cell: (c) => (
      <span className="mono dim">
        {c.tag}
        {c.exclusive ? " · exclusive" : ""}
      </span>
    ),
  },
  {
    id: "channel",
    head: "Channel",
    num: true,
    width: 76,
    sort: (c) => c.channel,
    cell: (c) => <Num value={c.channel} />,
  },
  {
    id: "unacked",
    head: "Unacked",
    num: true,
    width: 84,
    narrow: 76,
    sort: (c) => c.unacked,
    cell: (c) => (c.no_ack ? <span className="meta">auto-ack</span> : <Num value={c.unacked} />),
  },
  {
    id: "prefetch",
    head: "Prefetch",
    num: true,
    width: 84,
    sort: (c) => c.prefetch,
    cell: (c) => (c.prefetch === 0 ? <span className="meta">no limit</span> : <Num value={c.prefetch} />),
  },
  {
    id: "held",
    head: "Oldest held",
    num: true,
    width: 96,
    narrow: 92,
    sort: (c) => c.oldest_unacked_ns,
    cell: (c) => (
      <Duration
        ns={c.oldest_unacked_ns}
        tone={(c.oldest_unacked_ns ?? 0) > LONG_HELD_NS ? "warn" : "normal"}
        why="Nothing is unacked"
      />
    ),
  },
];

export const CONSUMERS_OF_QUEUE = [consumer, ...REST];
export const CONSUMERS_OF_CONNECTION: Column<Consumer>[] = [{ ...queue, narrow: "rest" }, ...REST];
const COLUMNS = [consumer, queue, ...REST];
export const consumerKey = (c: Consumer) => `${c.connection_id} ${c.channel} ${c.tag}`;

export function ConsumersTable({ space, search, change }: { space: string; search: QueuesSearch; change: Change }) {
  const navigate = useNavigate();
  const list = useList<Consumer>("consumers", { space, q: search.q, sort: search.sort }, consumerKey);
  return (
    <LongTable
      what="consumer"
      list={list}
      columns={COLUMNS}
      keyOf={consumerKey}
      search={search}
      change={change}
      onOpen={(c) =>
        void navigate({ to: "/queues/$queueSpace/$queueName", params: { queueSpace: c.space, queueName: c.queue } })
      }
      empty={
        <Empty title="No consumers">
          Who takes messages from a queue stands here, with how many it holds unacked and for how long. Until somebody
          consumes, messages wait in their queues.
        </Empty>
      }
    />
  );
}
