// One queue: totals, the depth channel, three charts, its messages, consumers and bindings.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useMemo, useRef, useState } from "react";
import { get, problemFrom, segment } from "../../api/client";
import type { PeekedMessage, Queue, QueueDetail } from "../../api/types";
import { PageHead } from "../../frame/PageHead";
import { useQueues } from "../../live/hooks";
import { Bytes } from "../../parts/Bytes";
import { DepthChannel } from "../../parts/DepthChannel";
import { upFor } from "../../parts/format";
import { Pill } from "../../parts/marks";
import { Num } from "../../parts/Num";
import { Fault, Outlines } from "../../parts/Region";
import { Duration, Time } from "../../parts/Time";
import { useWidth } from "../../parts/useWidth";
import { MessagePanel } from "./MessagePanel";
import { Messages } from "./Messages";
import { PurgeDialog } from "./PurgeDialog";
import { QueueCharts, usePeak } from "./QueueCharts";
import { QueueTables } from "./QueueTables";
import { features, fullIn, limitOf } from "./queue";
import type { QueueSearch } from "./search";
import "./queues.css";

export function QueuePage() {
  const { queueSpace: space, queueName: name } = useParams({ from: "/queues/$queueSpace/$queueName" });
  const { values, gone } = useQueue(space, name);
  const path = `queues/${segment(space)}/${segment(name)}`;
  const detail = useQuery({
    queryKey: ["queue", space, name],
    queryFn: ({ signal }) => get<QueueDetail>(path, {}, signal),
    refetchInterval: gone ? false : 2000,
    placeholderData: keepPreviousData,
  });
  const queue = values ?? detail.data ?? null;
  const head = (
    <>
      <Link to="/queues" className="dim">
        Queues
      </Link>
      <span className="sep">/</span>
      <span className="mono cut">{name}</span>
    </>
  );
  if (!queue) {
    return (
      <>
        <PageHead title={head} name={name} />
        {detail.error ? (
          <Fault problem={problemFrom(detail.error)} retry={() => void detail.refetch()} />
        ) : (
          <Outlines />
        )}
      </>
    );
  }
  return (
    <Loaded key={`${space} ${name}`} queue={queue} detail={detail.data ?? null} gone={gone} head={head} path={path} />
  );
}

/** The queue's live values. When it goes the last ones stay readable, with the time it went. */
function useQueue(space: string, name: string): { values: Queue | null; gone: number | null } {
  const { list, ready } = useQueues(space);
  const now = list.find((q) => q.name === name) ?? null;
  const last = useRef<{ queue: Queue; gone: number | null } | null>(null);
  if (now) last.current = { queue: now, gone: null };
  else if (last.current && last.current.queue.name === name && ready) last.current.gone ??= Date.now() * 1000;
  const known = last.current?.queue.name === name && last.current.queue.space === space ? last.current : null;
  return { values: known?.queue ?? null, gone: known?.gone ?? null };
}

interface LoadedProps {
  queue: Queue;
  detail: QueueDetail | null;
  gone: number | null;
  head: React.ReactNode;
  path: string;
}

function Loaded({ queue, detail, gone, head, path }: LoadedProps) {
  const search = useSearch({ from: "/queues/$queueSpace/$queueName" });
  const navigate = useNavigate({ from: "/queues/$queueSpace/$queueName" });
  const change = (next: Partial<QueueSearch>, replace = false) =>
    void navigate({ search: (s) => ({ ...s, ...next }), replace });
  const [purging, setPurging] = useState(false);
  const [open, setOpen] = useState<PeekedMessage | null>(null);
  const channel = useRef<HTMLDivElement>(null);
  const width = useWidth(channel);
  const peak = usePeak(queue);
  return (
    <div className={`queue-page${open ? " with-side" : ""}`}>
      <PageHead
        title={head}
        name={queue.name}
        meta={
          <span className="flex pills">
            {features(queue).map((f) => (
              <span key={f.text} title={f.title}>
                <Pill {...(f.tone ? { tone: f.tone } : {})}>{f.text}</Pill>
              </span>
            ))}
            {gone === null ? null : (
              <span className="warn">
                gone since <Time at={gone} />
              </span>
            )}
          </span>
        }
        actions={
          gone === null ? (
            <button type="button" className="btn danger" disabled={queue.ready === 0} onClick={() => setPurging(true)}>
              Purge
            </button>
          ) : null
        }
      />
      <div className="queue-main">
        <Totals queue={queue} />
        <div className="channel" ref={channel}>
          {width > 0 ? (
            <DepthChannel
              ready={queue.ready}
              limit={limitOf(queue)}
              tone={queue.tone}
              peak={peak}
              width={Math.max(200, width - 32)}
            />
          ) : null}
        </div>
        <QueueCharts queue={queue} />
        <Messages
          queue={queue}
          path={path}
          search={search}
          change={change}
          open={open}
          onOpen={setOpen}
          gone={gone !== null}
        />
        <QueueTables queue={queue} detail={detail} search={search} change={change} />
      </div>
      {open ? <MessagePanel message={open} queue={queue} detail={detail} close={() => setOpen(null)} /> : null}
      {purging ? <PurgeDialog queue={queue} path={path} close={() => setPurging(false)} /> : null}
    </div>
  );
}

function Totals({ queue }: { queue: Queue }) {
  const net = queue.in_rate - queue.out_rate;
  const full = fullIn(queue);
  const items = useMemo(
    (): [string, React.ReactNode][] => [
      ["Ready", <Num key="r" value={queue.ready} tone={queue.tone} />],
      ["Unacked", <Num key="u" value={queue.unacked} />],
      ["In", <Num key="i" value={queue.in_rate} as="rate" />],
      ["Out", <Num key="o" value={queue.out_rate} as="rate" />],
      ["Net", <Num key="n" value={net} as="rateNet" tone={net > 0.05 ? queue.tone : "normal"} />],
      ["Wait p95", <Duration key="w" ns={queue.wait_p95_ns} tone={queue.tone} why="No message was delivered lately" />],
      ["Oldest unacked", <Duration key="k" ns={queue.oldest_unacked_ns} why="Nothing is unacked" />],
      ["Redelivered", <Num key="d" value={queue.redelivered} />],
      ["Bytes", <Bytes key="b" value={queue.ready_bytes} />],
      ...(full === null ? [] : [["Full at this rate", `in ${upFor(full)}`] as [string, React.ReactNode]]),
    ],
    [queue, net, full],
  );
  return (
    <dl className="totals">
      {items.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
