// The messages of a queue, looked at: ready ones by their place, unacked ones with who holds them. Order, counts and consumers stay
// as they are. The list holds still while one is open.

import { useCallback, useEffect, useMemo } from "react";
import { get } from "../../api/client";
import type { Messages as Looked, PeekedMessage, Queue } from "../../api/types";
import { serverNowUs } from "../../live/feed";
import { useServices } from "../../live/hooks";
import { paused } from "../../live/pause";
import { type Fetched, useStretch } from "../../live/useStretch";
import { count, plural } from "../../parts/format";
import { QueryField } from "../../parts/QueryBar";
import { Empty, Fault, NoMatch, Outlines } from "../../parts/Region";
import { Segments } from "../../parts/Segments";
import { Table } from "../../parts/Table";
import { columnsFor, type Row } from "./messageColumns";
import type { QueueSearch } from "./search";

/** Of each body, for its line in the list. */
const LINE_BYTES = 400;
/** Hits of a search. */
const FOUND_MAX = 500;
const PLACES_MAX = 1_000_000;

interface MessagesProps {
  queue: Queue;
  path: string;
  search: QueueSearch;
  change: (next: Partial<QueueSearch>, replace?: boolean) => void;
  open: PeekedMessage | null;
  onOpen: (m: PeekedMessage | null) => void;
  gone: boolean;
  publish: () => void;
}
interface Look extends Fetched<Row> {
  looked: Looked;
}

/** Of two channels each may hold a message of the same id only once; a ready one has its id alone. */
const rowKey = (m: PeekedMessage): string =>
  m.holder ? `${m.id} ${m.holder.connection_id} ${m.holder.channel}` : String(m.id);

function useLook(path: string, search: QueueSearch, open: boolean, gone: boolean) {
  const { standing, q } = search;
  useEffect(() => {
    paused.set("open", open);
    return () => paused.set("open", false);
  }, [open]);
  const fetch = useCallback(
    async (from: number, n: number, signal: AbortSignal): Promise<Look> => {
      const part = q ? { find: q, count: FOUND_MAX } : { from, count: n };
      const looked = await get<Looked>(`${path}/messages`, { standing, body_bytes: LINE_BYTES, ...part }, signal);
      const at_us = serverNowUs();
      const rows = looked.messages.map((m): Row => ({ ...m, at_us }));
      const all = standing === "unacked" ? looked.unacked : looked.ready;
      return { rows, total: q ? rows.length : Math.min(Math.max(all, rows.length), PLACES_MAX), looked };
    },
    [path, standing, q],
  );
  return useStretch<Row, Look>({
    key: ["messages", path, standing ?? "ready", q ?? ""],
    fetch,
    keyOf: rowKey,
    every: open || gone ? false : q ? 5000 : 1500,
    enabled: !gone,
  });
}

export function Messages({ queue, path, search, change, open, onOpen, gone, publish }: MessagesProps) {
  const unacked = search.standing === "unacked";
  const { rows, answer, stretch, problem, pending, refetch } = useLook(path, search, open !== null, gone);
  const { list: services } = useServices(queue.space);
  const names = useMemo(() => new Set(services.map((s) => s.name)), [services]);
  const columns = useMemo(() => columnsFor(names, unacked), [names, unacked]);
  const looked = answer ? answer.looked.looked_at : 0;
  return (
    <section className="queue-messages" aria-label="Messages">
      <div className="query">
        <Segments
          label="Which messages"
          value={search.standing ?? "ready"}
          options={[
            ["ready", `Ready ${count(queue.ready)}`],
            ["unacked", `Unacked ${count(queue.unacked)}`],
          ]}
          onChange={(v) => change({ standing: v === "ready" ? undefined : v, message: undefined }, true)}
        />
        <QueryField
          plain
          value={search.q ?? ""}
          onChange={(q, replace) => change({ q: q || undefined }, replace)}
          placeholder="Find in key, headers or body"
        />
        <span className="meta tiny wide-only">
          {search.q && answer
            ? `${count(rows.length)} found among ${count(looked)}`
            : "Peek: order, counts and consumers stay as they are"}
        </span>
      </div>
      {problem && !answer ? (
        <Fault problem={problem} retry={refetch} />
      ) : pending && !gone ? (
        <Outlines rows={3} />
      ) : rows.length > 0 ? (
        <Table
          label={unacked ? "Unacked messages" : "Ready messages"}
          rows={rows}
          columns={columns}
          keyOf={rowKey}
          stretch={stretch}
          selected={open ? rowKey(open) : null}
          onOpen={(m) => onOpen(open && rowKey(open) === rowKey(m) ? null : m)}
        />
      ) : search.q ? (
        <NoMatch where={`“${search.q}”`} outside={answer ? `${plural(looked, "message")} looked at.` : null}>
          <button type="button" className="link" onClick={() => change({ q: undefined })}>
            Show all
          </button>
        </NoMatch>
      ) : unacked ? (
        <NoneHeld queue={queue} />
      ) : (
        <NoneReady queue={queue} publish={publish} />
      )}
    </section>
  );
}

function NoneReady({ queue, publish }: { queue: Queue; publish: () => void }) {
  return (
    <Empty title="No message is waiting">
      {queue.consumers > 0
        ? `${plural(queue.consumers, "consumer")} ${queue.consumers === 1 ? "takes" : "take"} them as they come.`
        : "No consumer is connected; what is published will wait here."}{" "}
      <button type="button" className="link" onClick={publish}>
        Publish one
      </button>
    </Empty>
  );
}
function NoneHeld({ queue }: { queue: Queue }) {
  return (
    <Empty title="No message is held unacked">
      {queue.consumers > 0
        ? "Consumers that acknowledge hold messages here while they work on them; with auto-ack nothing is held."
        : "Delivered messages stand here until their consumer acknowledges them, with who holds them and for how long."}
    </Empty>
  );
}
