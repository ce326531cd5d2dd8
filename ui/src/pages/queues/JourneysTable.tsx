// Messages that pass, and what became of each: published, routed, queued, delivered, acked, or how else it ended. They are followed
// while somebody looks here.

import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import { get, problemFrom } from "../../api/client";
import type { FollowedMessage, FollowedMessages, JourneyStep as Happened } from "../../api/types";
import { usePaused } from "../../live/hooks";
import { paused } from "../../live/pause";
import { clockMs, count, duration, plural } from "../../parts/format";
import { Journey, type JourneyStep } from "../../parts/Journey";
import { MiddleCut } from "../../parts/MiddleCut";
import { Empty, Fault, NoMatch, Outlines } from "../../parts/Region";
import { Facts, SectionHead, SidePanel } from "../../parts/SidePanel";
import { type Column, Table } from "../../parts/Table";
import { Time } from "../../parts/Time";
import { endOf, type Fate } from "./journey";
import { ExchangeName, QueueName } from "./links";
import { MessageBody } from "./MessagePanel";
import type { Change } from "./QueuesPage";
import { valueText } from "./queue";
import type { QueuesSearch } from "./search";

const keyOf = (m: FollowedMessage) => String(m.id);
const TONE: Record<Fate["tone"], string | undefined> = { normal: undefined, quiet: "meta", warn: "warn", err: "err" };

const columnsOf = (space: string): Column<FollowedMessage>[] => [
  {
    id: "at",
    head: "Published",
    width: 112,
    narrow: 112,
    cell: (m) => <Time at={m.steps[0]?.at_us} as="list" />,
  },
  {
    id: "exchange",
    head: "Exchange",
    width: 150,
    cell: (m) => <ExchangeName space={space} name={m.exchange} />,
  },
  { id: "key", head: "Key", width: 170, narrow: "rest", cell: (m) => <MiddleCut text={m.routing_key} /> },
  {
    id: "body",
    head: "Body",
    cell: (m) => <span className="mono dim">{m.encoding === "utf8" ? m.body : "binary"}</span>,
  },
  {
    id: "queues",
    head: "Queues",
    width: 200,
    title: (m) => m.queues.join(", "),
    cell: (m) =>
      m.queues.length === 0 ? (
        <span className="meta">–</span>
      ) : (
        <span className="with-rest">
          <QueueName space={space} name={m.queues[0] as string} />
          {m.queues.length > 1 ? <span className="meta">+{m.queues.length - 1}</span> : null}
        </span>
      ),
  },
  {
    id: "took",
    head: "Took",
    num: true,
    width: 84,
    cell: (m) => <span className={m.open > 0 ? "meta" : undefined}>{took(m)}</span>,
  },
  {
    id: "end",
    head: "Now",
    width: 190,
    narrow: 132,
    cell: (m) => {
      const fate = endOf(m);
      return <span className={TONE[fate.tone]}>{fate.words}</span>;
    },
  },
];

function took(m: FollowedMessage): string {
  const [first, last] = [m.steps[0], m.steps.at(-1)];
  if (!first || !last || m.open > 0) return "open";
  return duration(Math.max(1, last.at_us - first.at_us) * 1000);
}

export function JourneysTable({ space, search, change }: { space: string; search: QueuesSearch; change: Change }) {
  const held = usePaused();
  const open = search.message !== undefined;
  useEffect(() => {
    paused.set("open", open);
    return () => paused.set("open", false);
  }, [open]);
  const { data, error, refetch } = useQuery({
    queryKey: ["journeys", space, search.q ?? ""],
    queryFn: ({ signal }) => get<FollowedMessages>("journeys", { space, text: search.q, limit: 200 }, signal),
    // Asking is what keeps them followed, so a held list is asked for too, only rarely.
    refetchInterval: held.has("key") || open ? 20_000 : 1000,
    placeholderData: (before) => before,
  });
  const columns = useMemo(() => columnsOf(space), [space]);
  const rows = data?.messages ?? [];
  return (
    <div className="with-panel">
      <div className="journeys">
        {error ? (
          <Fault problem={problemFrom(error)} retry={() => void refetch()} />
        ) : !data ? (
          <Outlines />
        ) : rows.length > 0 ? (
          <Table
            label="Messages, newest first"
            rows={rows}
            columns={columns}
            keyOf={keyOf}
            selected={open ? String(search.message) : null}
            onOpen={(m) => change({ message: search.message === m.id ? undefined : m.id }, open)}
          />
        ) : data.kept > 0 && search.q ? (
          <NoMatch where={`“${search.q}”`} outside={`${plural(data.kept, "message")} kept.`}>
            <button type="button" className="link" onClick={() => change({ q: undefined })}>
              Show all
            </button>
          </NoMatch>
        ) : (
          <Empty title="Messages are followed from now on">
            Every message published to this space while this page is open stands here with what became of it: routed,
            queued, delivered, acked, or how else it ended. Search by id, header or body. What passed before nobody
            watched.
          </Empty>
        )}
        {data && data.skipped > 0 ? (
          <p className="meta tiny journeys-foot">
            {count(data.kept)} kept, {count(data.skipped)} passed beyond what is followed in a second.
          </p>
        ) : null}
      </div>
      {search.message === undefined ? null : (
        <Opened
          key={search.message}
          space={space}
          id={search.message}
          row={rows.find((m) => m.id === search.message) ?? null}
          close={() => change({ message: undefined })}
        />
      )}
    </div>
  );
}

interface OpenedProps {
  space: string;
  id: number;
  row: FollowedMessage | null;
  close: () => void;
}

function Opened({ space, id, row, close }: OpenedProps) {
  const { data, error } = useQuery({
    queryKey: ["journey", space, id],
    queryFn: ({ signal }) => get<FollowedMessage>(`journeys/${encodeURIComponent(space)}/${id}`, {}, signal),
    refetchInterval: 1000,
    retry: false,
  });
  const m = data ?? row;
  const named = m ? [...Object.entries(m.properties), ...Object.entries(m.headers)] : [];
  return (
    <SidePanel label="Message" title="Message" close={close} width={400}>
      {error && !m ? <Fault problem={problemFrom(error)} /> : null}
      {m ? (
        <>
          <SectionHead title="Journey" note={m.open > 0 ? `${m.open} open` : undefined} first />
          <Journey steps={stepsOf(m, space)} />
          {m.steps_left_out > 0 ? (
            <p className="note meta">{plural(m.steps_left_out, "later step")} left out.</p>
          ) : null}
          <MessageBody message={m} />
          <SectionHead title="Properties and headers" note={named.length} />
          <Facts rows={named.map(([k, v]) => [k, valueText(v)] as const)} />
        </>
      ) : null}
    </SidePanel>
  );
}

/** Every step with its time: the first by the clock, the others by how long after it. */
function stepsOf(m: FollowedMessage, space: string): JourneyStep[] {
  const start = m.steps[0]?.at_us ?? 0;
  const steps = m.steps.map((s, i): JourneyStep => {
    const { what, note, tone } = wordsOf(s, m, space);
    const time = i === 0 ? clockMs(s.at_us) : s.at_us === start ? "at once" : `+${duration((s.at_us - start) * 1000)}`;
    return { at: "done", what, note, time, tone };
  });
  if (m.open > 0) {
    const delivered = m.steps.filter((s) => s.what === "delivered").length > m.steps.filter(isEnd).length;
    steps.push({ at: "now", what: delivered ? "Being worked on" : "Waiting", note: null, time: "open" });
  }
  return steps;
}
const isEnd = (s: Happened) => ["acked", "rejected", "requeued", "expired", "dropped"].includes(s.what);

type Words = Pick<JourneyStep, "what" | "note"> & { tone?: "warn" | "err" | undefined };

function wordsOf(s: Happened, m: FollowedMessage, space: string): Words {
  const queue = s.queue ? <QueueName space={space} name={s.queue} /> : null;
  const at = s.connection ? `${s.connection}${s.channel === null ? "" : `, channel ${s.channel}`}` : null;
  switch (s.what) {
    case "published":
      return { what: <>Published by {s.user}</>, note: at };
    case "routed":
      return {
        what: (
          <>
            Routed by <ExchangeName space={space} name={m.exchange} />
          </>
        ),
        note: `${m.routing_key ? `key ${m.routing_key}` : "no key"}, to ${plural(s.queues ?? 0, "queue")}`,
      };
    case "queued":
      return { what: <>Queued in {queue}</>, note: null };
    case "delivered":
      return {
        what: <>Delivered from {queue}</>,
        note: `${at ?? ""}${s.redelivered ? ", again" : ""}${s.no_ack ? ", nobody will ack it" : ""}`,
      };
    case "acked":
      return { what: <>Acked in {queue}</>, note: null };
    case "rejected":
      return { what: <>Rejected in {queue}</>, note: null, tone: "warn" };
    case "requeued":
      return { what: <>Returned to {queue}</>, note: null, tone: "warn" };
    case "expired":
      return { what: <>Expired in {queue}</>, note: null, tone: "warn" };
    case "dropped":
      return { what: <>Dropped from {queue}</>, note: s.reason, tone: "warn" };
    case "kept":
      return { what: <>Kept in {queue} until somebody takes it as a dead letter</>, note: s.reason, tone: "warn" };
    case "dead-lettered":
      return {
        what: (
          <>
            Dead-lettered by <ExchangeName space={space} name={s.exchange ?? ""} />
          </>
        ),
        note: s.queue ? `from ${s.queue}` : null,
        tone: "warn",
      };
    case "returned":
      return { what: "Returned to its publisher", note: "no queue took it", tone: "err" };
    default:
      return { what: "No queue took it", note: "it was not mandatory, so nobody was told", tone: "err" };
  }
}
