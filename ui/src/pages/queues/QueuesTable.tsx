import { useNavigate } from "@tanstack/react-router";
import type { Queue } from "../../api/types";
import { useList } from "../../live/useList";
import { Bytes } from "../../parts/Bytes";
import { DepthSmall } from "../../parts/DepthChannel";
import { MiddleCut } from "../../parts/MiddleCut";
import { Num } from "../../parts/Num";
import type { Column } from "../../parts/Table";
import { Duration } from "../../parts/Time";
import { LongTable } from "./LongTable";
import { NoQueues } from "./NoQueues";
import type { Change } from "./QueuesPage";
import { limitOf } from "./queue";
import type { QueuesSearch } from "./search";

const quiet = (v: number) => (v === 0 ? <span className="meta">0</span> : <Num value={v} as="rateCell" />);
const quietCount = (v: number) => (v === 0 ? <span className="meta">0</span> : <Num value={v} />);

const COLUMNS: Column<Queue>[] = [
  {
    id: "name",
    head: "Queue",
    narrow: "rest",
    sort: (q) => q.name,
    cell: (q) => <MiddleCut text={q.name} />,
  },
  {
    id: "depth",
    head: "Depth",
    width: 172,
    cell: (q) => <DepthSmall ready={q.ready} limit={limitOf(q)} tone={q.tone} />,
  },
  {
    id: "ready",
    head: "Ready",
    num: true,
    width: 84,
    narrow: 76,
    sort: (q) => q.ready,
    cell: (q) => (q.ready === 0 ? <span className="meta">0</span> : <Num value={q.ready} tone={q.tone} />),
  },
  { id: "unacked", head: "Unacked", num: true, width: 76, sort: (q) => q.unacked, cell: (q) => quietCount(q.unacked) },
  { id: "in", head: "In, /s", num: true, width: 66, sort: (q) => q.in_rate, cell: (q) => quiet(q.in_rate) },
  { id: "out", head: "Out, /s", num: true, width: 66, sort: (q) => q.out_rate, cell: (q) => quiet(q.out_rate) },
  {
    id: "wait",
    head: "Wait p95",
    num: true,
    width: 84,
    narrow: 76,
    sort: (q) => q.wait_p95_ns,
    cell: (q) => <Duration ns={q.wait_p95_ns} tone={q.tone} short why="No message was delivered lately" />,
  },
  {
    id: "oldest",
    broad: true,
    head: "Oldest unacked",
    num: true,
    width: 108,
    sort: (q) => q.oldest_unacked_ns,
    cell: (q) => <Duration ns={q.oldest_unacked_ns} short why="Nothing is unacked" />,
  },
  {
    id: "consumers",
    head: "Consumers",
    num: true,
    width: 84,
    sort: (q) => q.consumers,
    cell: (q) => (q.consumers === 0 ? <span className="meta">0</span> : <Num value={q.consumers} />),
  },
  {
    id: "bytes",
    broad: true,
    head: "Bytes",
    num: true,
    width: 84,
    sort: (q) => q.ready_bytes,
    cell: (q) => (q.ready_bytes === 0 ? <span className="meta">0 B</span> : <Bytes value={q.ready_bytes} />),
  },
  {
    id: "kind",
    broad: true,
    head: "Kind",
    width: 168,
    cell: (q) => (
      <span className="meta">
        {[
          q.durable ? (q.not_on_disk ? "durable, not on disk" : "durable") : "transient",
          q.exclusive ? "exclusive" : "",
          q.auto_delete ? "auto-delete" : "",
        ]
          .filter(Boolean)
          .join(", ")}
      </span>
    ),
    title: (q) => (q.not_on_disk ? "Declared durable, kept in memory: messages do not survive a restart" : undefined),
  },
  {
    id: "redelivered",
    head: "Redelivered",
    num: true,
    width: 88,
    optional: true,
    sort: (q) => q.redelivered,
    cell: (q) => quietCount(q.redelivered),
  },
];

interface QueuesTableProps {
  space: string;
  search: QueuesSearch;
  change: Change;
}

const keyOf = (q: Queue) => q.name;

export function QueuesTable({ space, search, change }: QueuesTableProps) {
  const navigate = useNavigate();
  const list = useList<Queue>("queues/page", { space, q: search.q, sort: search.sort }, keyOf);
  return (
    <LongTable
      what="queue"
      list={list}
      columns={COLUMNS}
      keyOf={keyOf}
      search={search}
      change={change}
      onOpen={(x) =>
        void navigate({ to: "/queues/$queueSpace/$queueName", params: { queueSpace: x.space, queueName: x.name } })
      }
      empty={<NoQueues declare={() => change({ make: "queue" })} />}
    />
  );
}
