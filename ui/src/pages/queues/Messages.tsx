// Ready messages of a queue, peeked at: order, counts and consumers stay as they are. The list holds still while one is open.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useMemo } from "react";
import { get, problemFrom } from "../../api/client";
import type { Messages as Looked, PeekedMessage, Queue } from "../../api/types";
import { serverNowUs } from "../../live/feed";
import { usePaused, useServices } from "../../live/hooks";
import { paused } from "../../live/pause";
import { Bytes } from "../../parts/Bytes";
import { count, plural, shortId } from "../../parts/format";
import { ServiceName } from "../../parts/marks";
import { Num } from "../../parts/Num";
import { QueryField } from "../../parts/QueryBar";
import { Empty, Fault, NoMatch, Outlines } from "../../parts/Region";
import { type Column, Table } from "../../parts/Table";
import { Duration } from "../../parts/Time";
import { messageMatches, placeOf, senderOf, traceOf } from "./queue";
import type { QueueSearch } from "./search";

const PEEK = 100;

interface MessagesProps {
  queue: Queue;
  path: string;
  search: QueueSearch;
  change: (next: Partial<QueueSearch>, replace?: boolean) => void;
  open: PeekedMessage | null;
  onOpen: (m: PeekedMessage | null) => void;
  gone: boolean;
}

interface Row extends PeekedMessage {
  at_us: number;
}

/** Peeks every other second, unless the list is held or the queue is gone. */
function usePeek(path: string, open: boolean, gone: boolean) {
  const reasons = usePaused();
  const held = reasons.has("key") || open;
  useEffect(() => {
    paused.set("open", open);
    return () => paused.set("open", false);
  }, [open]);
  return useQuery({
    queryKey: ["messages", path],
    queryFn: async ({ signal }) => {
      const { messages } = await get<Looked>(`${path}/messages`, { count: PEEK }, signal);
      const at_us = serverNowUs();
      return messages.map((m): Row => ({ ...m, at_us }));
    },
    refetchInterval: held || gone ? false : 2000,
    placeholderData: keepPreviousData,
    enabled: !gone,
  });
}

export function Messages({ queue, path, search, change, open, onOpen, gone }: MessagesProps) {
  const { data, error, refetch, isPending } = usePeek(path, open !== null, gone);
  const { list: services } = useServices(queue.space);
  const names = useMemo(() => new Set(services.map((s) => s.name)), [services]);
  const columns = useMemo(() => columnsFor(names), [names]);
  const rows = useMemo(
    () => (search.q ? (data ?? []).filter((m) => messageMatches(m, search.q as string)) : (data ?? [])),
    [data, search.q],
  );
  return (
    <section className="queue-messages" aria-label="Messages">
      <div className="query">
        <h2 className="queue-head">
          Messages <span className="meta">{count(queue.ready)} ready</span>
        </h2>
        <QueryField
          plain
          value={search.q ?? ""}
          onChange={(q, replace) => change({ q: q || undefined }, replace)}
          placeholder="Filter by key, header or body"
        />
        <span className="meta tiny wide-only">
          {queue.ready > PEEK ? `First ${PEEK} of ${count(queue.ready)}. ` : ""}Peek: order, counts and consumers stay
          as they are
        </span>
      </div>
      {error ? (
        <Fault problem={problemFrom(error)} retry={() => void refetch()} />
      ) : isPending && !gone ? (
        <Outlines rows={3} />
      ) : (data ?? []).length === 0 ? (
        <Empty title="No message is waiting">
          {queue.consumers > 0
            ? `${plural(queue.consumers, "consumer")} ${queue.consumers === 1 ? "takes" : "take"} them as they come.`
            : "No consumer is connected; what is published will wait here."}
        </Empty>
      ) : rows.length === 0 ? (
        <NoMatch where={`among the first ${data?.length ?? 0}`} outside={null}>
          <button type="button" className="link" onClick={() => change({ q: undefined })}>
            Show all
          </button>
        </NoMatch>
      ) : (
        <Table
          label="Messages"
          rows={rows}
          columns={columns}
          keyOf={(m) => String(m.position)}
          selected={open ? String(open.position) : null}
          onOpen={(m) => onOpen(open?.position === m.position ? null : m)}
        />
      )}
    </section>
  );
}

function columnsFor(services: ReadonlySet<string>): Column<Row>[] {
  return [
    { id: "place", head: "Place", num: true, width: 64, narrow: 56, cell: (m) => <Num value={placeOf(m)} /> },
    {
      id: "waiting",
      head: "Waiting",
      num: true,
      width: 84,
      cell: (m) => (
        <Duration
          ns={m.queued_us === null ? null : Math.max(0, (m.at_us - m.queued_us) * 1000)}
          why="When it came is not known"
        />
      ),
    },
    {
      id: "key",
      head: "Key",
      width: 150,
      narrow: 116,
      title: (m) => m.routing_key,
      cell: (m) => <span className="mono">{m.routing_key || <span className="meta">(empty)</span>}</span>,
    },
    {
      id: "body",
      head: "Body",
      narrow: "rest",
      cell: (m) => <span className="mono dim">{m.encoding === "utf8" ? m.body : "binary"}</span>,
    },
    { id: "size", head: "Size", num: true, width: 78, cell: (m) => <Bytes value={m.bytes} /> },
    {
      id: "from",
      head: "From",
      width: 96,
      cell: (m) => {
        const from = senderOf(m);
        if (from === null) return <span className="meta">–</span>;
        return services.has(from) ? <ServiceName name={from} /> : <span className="mono dim">{from}</span>;
      },
    },
    {
      id: "trace",
      head: "Trace",
      width: 84,
      cell: (m) => {
        const trace = traceOf(m);
        return trace ? (
          <Link className="mono dim" to="/traces/$traceId" params={{ traceId: trace }} title={trace}>
            {shortId(trace)}
          </Link>
        ) : (
          <span className="meta">–</span>
        );
      },
    },
  ];
}
