// Consumers, bindings and arguments of a queue.

import type { Binding, Consumer, Queue, QueueDetail } from "../../api/types";
import { count } from "../../parts/format";
import { ServiceName } from "../../parts/marks";
import { Num } from "../../parts/Num";
import { Empty, Outlines } from "../../parts/Region";
import { Segments } from "../../parts/Segments";
import { Facts } from "../../parts/SidePanel";
import { type Column, Table } from "../../parts/Table";
import { Duration } from "../../parts/Time";
import { exchangeName } from "./ExchangesTable";
import { valueText } from "./queue";
import type { QueueSearch } from "./search";

const LONG_HELD_NS = 30e9;

const CONSUMERS: Column<Consumer>[] = [
  {
    id: "consumer",
    head: "Consumer",
    narrow: "rest",
    title: (c) => c.connection,
    cell: (c) =>
      c.service ? (
        <>
          <ServiceName name={c.service} />{" "}
          <span className="meta">{c.connection === c.service ? "" : c.connection}</span>
        </>
      ) : (
        <span className="mono">{c.connection}</span>
      ),
  },
  { id: "tag", head: "Tag", width: 190, title: (c) => c.tag, cell: (c) => <span className="mono dim">{c.tag}</span> },
  { id: "channel", head: "Channel", num: true, width: 76, cell: (c) => <Num value={c.channel} /> },
  {
    id: "unacked",
    head: "Unacked",
    num: true,
    width: 84,
    narrow: 76,
    cell: (c) => (c.no_ack ? <span className="meta">auto-ack</span> : <Num value={c.unacked} />),
  },
  {
    id: "prefetch",
    head: "Prefetch",
    num: true,
    width: 84,
    cell: (c) => (c.prefetch === 0 ? <span className="meta">no limit</span> : <Num value={c.prefetch} />),
  },
  {
    id: "held",
    head: "Oldest held",
    num: true,
    width: 96,
    narrow: 92,
    cell: (c) => (
      <Duration
        ns={c.oldest_unacked_ns}
        tone={(c.oldest_unacked_ns ?? 0) > LONG_HELD_NS ? "warn" : "normal"}
        why="Nothing is unacked"
      />
    ),
  },
];

const BINDINGS: Column<Binding>[] = [
  {
    id: "source",
    head: "From exchange",
    narrow: true,
    width: 240,
    cell: (b) => <span className="mono">{exchangeName(b.source)}</span>,
  },
  {
    id: "key",
    head: "Key",
    narrow: "rest",
    title: (b) => b.routing_key,
    cell: (b) => <span className="mono">{b.routing_key || <span className="meta">(empty)</span>}</span>,
  },
  {
    id: "arguments",
    head: "Arguments",
    width: 260,
    cell: (b) => (
      <span className="mono dim">{Object.keys(b.arguments).length > 0 ? JSON.stringify(b.arguments) : ""}</span>
    ),
  },
];

interface QueueTablesProps {
  queue: Queue;
  detail: QueueDetail | null;
  search: QueueSearch;
  change: (next: Partial<QueueSearch>, replace?: boolean) => void;
}

export function QueueTables({ queue, detail, search, change }: QueueTablesProps) {
  const tab = search.tab ?? "consumers";
  return (
    <section className="queue-tables line-top" aria-label="Consumers and bindings">
      <div className="region-head">
        <Segments
          label="What"
          value={tab}
          options={[
            ["consumers", `Consumers ${count(queue.consumers)}`],
            ["bindings", `Bindings ${detail ? count(detail.bindings.length) : ""}`],
            ["arguments", `Arguments ${count(Object.keys(queue.arguments).length)}`],
          ]}
          onChange={(v) => change({ tab: v === "consumers" ? undefined : v }, true)}
        />
      </div>
      {tab === "arguments" ? (
        <Arguments queue={queue} />
      ) : detail ? (
        <Listed tab={tab} detail={detail} />
      ) : (
        <Outlines rows={2} />
      )}
    </section>
  );
}

function Listed({ tab, detail }: { tab: "consumers" | "bindings"; detail: QueueDetail }) {
  if (tab === "bindings") {
    if (detail.bindings.length === 0)
      return <Empty title="Bound to nothing">Messages reach it by its name through the default exchange.</Empty>;
    return (
      <Table
        label="Bindings"
        rows={detail.bindings}
        columns={BINDINGS}
        keyOf={(b) => `${b.source} ${b.routing_key} ${JSON.stringify(b.arguments)}`}
        grows
      />
    );
  }
  if (detail.consumer_list.length === 0)
    return <Empty title="No consumer">What is published waits here until one connects.</Empty>;
  return (
    <Table
      label="Consumers"
      rows={detail.consumer_list}
      columns={CONSUMERS}
      keyOf={(c) => `${c.connection} ${c.channel} ${c.tag}`}
      grows
    />
  );
}

function Arguments({ queue }: { queue: Queue }) {
  const entries = Object.entries(queue.arguments);
  if (entries.length === 0) return <Empty title="Declared without arguments" />;
  return <Facts rows={entries.map(([k, v]) => [k, valueText(v)] as const)} />;
}
