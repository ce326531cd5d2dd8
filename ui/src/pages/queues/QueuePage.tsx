// One queue: totals, the depth channel, three charts, its messages, consumers, bindings and settings, and what can be done to it.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useRef, useState } from "react";
import { get, problemFrom, segment } from "../../api/client";
import type { PeekedMessage, Queue, QueueDetail } from "../../api/types";
import { PageHead } from "../../frame/PageHead";
import { useKeys } from "../../keys/useKeys";
import { usePaused } from "../../live/hooks";
import { Bytes } from "../../parts/Bytes";
import { DepthChannel } from "../../parts/DepthChannel";
import { upFor } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { Menu } from "../../parts/Menu";
import { MiddleCut } from "../../parts/MiddleCut";
import { Pill } from "../../parts/marks";
import { Num } from "../../parts/Num";
import { Fault, Outlines } from "../../parts/Region";
import { Duration, Time } from "../../parts/Time";
import { useWidth } from "../../parts/useWidth";
import type { Done } from "./action";
import { MessagePanel } from "./MessagePanel";
import { Messages } from "./Messages";
import { PublishDialog } from "./PublishDialog";
import { QueueCharts, usePeak } from "./QueueCharts";
import { DeleteDialog, MoveDialog, PurgeDialog, RedriveDialog } from "./QueueDialogs";
import { QueueTables } from "./QueueTables";
import { features, fullIn, limitOf } from "./queue";
import type { QueueAction, QueueSearch } from "./search";
import { Undo } from "./Undo";
import "./queues.css";

export function QueuePage() {
  const { queueSpace: space, queueName: name } = useParams({ from: "/queues/$queueSpace/$queueName" });
  const path = `queues/${segment(space)}/${segment(name)}`;
  const held = usePaused().has("key");
  const detail = useQuery({
    queryKey: ["queue", space, name],
    queryFn: ({ signal }) => get<QueueDetail>(path, {}, signal),
    refetchInterval: held ? false : 1000,
    placeholderData: keepPreviousData,
  });
  const { queue, gone } = useLast(detail.data, detail.error, `${space} ${name}`);
  const head = (
    <>
      <Link to="/queues" className="dim">
        Queues
      </Link>
      <span className="sep">/</span>
      <MiddleCut text={name} />
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
  return <Loaded key={`${space} ${name}`} queue={queue} gone={gone} head={head} path={path} />;
}

/** When the queue goes its last values stay readable, with the time it went. */
function useLast(data: QueueDetail | undefined, error: Error | null, id: string) {
  const last = useRef<{ queue: QueueDetail; gone: number | null } | null>(null);
  if (data && `${data.space} ${data.name}` === id && !error) last.current = { queue: data, gone: null };
  const known = last.current && `${last.current.queue.space} ${last.current.queue.name}` === id ? last.current : null;
  if (known && error && problemFrom(error).status === 404) known.gone ??= Date.now() * 1000;
  return { queue: known?.queue ?? null, gone: known?.gone ?? null };
}

interface LoadedProps {
  queue: QueueDetail;
  gone: number | null;
  head: React.ReactNode;
  path: string;
}

function Loaded({ queue, gone, head, path }: LoadedProps) {
  const search = useSearch({ from: "/queues/$queueSpace/$queueName" });
  const navigate = useNavigate({ from: "/queues/$queueSpace/$queueName" });
  const change = (next: Partial<QueueSearch>, replace = false) =>
    void navigate({ search: (s) => ({ ...s, ...next }), replace });
  const act = (action: QueueAction | undefined) => change({ act: action }, action === undefined);
  const { open, setOpen } = useOpened(path, search, change);
  const [chosen, setChosen] = useState<number[] | undefined>(undefined);
  const [done, setDone] = useState<Done | null>(null);
  const clear = useCallback(() => setDone(null), []);
  const channel = useRef<HTMLDivElement>(null);
  const width = useWidth(channel);
  const peak = usePeak(queue);
  const close = () => {
    setChosen(undefined);
    if (chosen) setOpen(null);
    act(undefined);
  };
  const say = (next: Done) => {
    setDone(next);
    if (chosen) setOpen(null);
  };
  return (
    <div className={`queue-page${open ? " with-side" : ""}`}>
      <PageHead
        title={head}
        name={queue.name}
        meta={<Meta queue={queue} gone={gone} />}
        actions={gone === null ? <Actions queue={queue} act={act} /> : null}
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
          publish={() => act("publish")}
        />
        <QueueTables queue={queue} search={search} change={change} />
        {done ? <Undo key={done.words} done={done} clear={clear} /> : null}
      </div>
      {open ? (
        <MessagePanel
          key={open.id}
          message={open}
          queue={queue}
          path={path}
          close={() => setOpen(null)}
          move={(ids) => {
            setChosen(ids);
            act("move");
          }}
          done={setDone}
        />
      ) : null}
      <Dialogs
        act={search.act}
        queue={queue}
        path={path}
        ids={chosen}
        close={close}
        done={say}
        deleted={() => void navigate({ to: "/queues" })}
      />
    </div>
  );
}

interface DialogsProps {
  act: QueueAction | undefined;
  queue: QueueDetail;
  path: string;
  ids: number[] | undefined;
  close: () => void;
  done: (done: Done) => void;
  deleted: () => void;
}

function Dialogs({ act, ids, deleted, ...own }: DialogsProps) {
  const { queue, close } = own;
  switch (act) {
    case "publish":
      return <PublishDialog space={queue.space} exchange="" routingKey={queue.name} fixed close={close} />;
    case "move":
      return <MoveDialog {...own} ids={ids} />;
    case "redrive":
      return <RedriveDialog {...own} />;
    case "purge":
      return <PurgeDialog {...own} />;
    case "delete":
      return <DeleteDialog {...own} deleted={deleted} />;
    case undefined:
      return null;
  }
}

/** The opened message: the row that was pressed, or the one the URL names. */
function useOpened(path: string, search: QueueSearch, change: (next: Partial<QueueSearch>, replace?: boolean) => void) {
  const [row, setRow] = useState<PeekedMessage | null>(null);
  const wanted = search.message;
  const known = row && row.id === wanted ? row : null;
  const { data, isError } = useQuery({
    queryKey: ["message", path, wanted],
    queryFn: ({ signal }) => get<PeekedMessage>(`${path}/messages/${wanted}`, {}, signal),
    enabled: wanted !== undefined && known === null && search.standing === undefined,
    retry: false,
  });
  const lost = isError && known === null && wanted !== undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: `change` is made anew with every render
  useEffect(() => {
    if (lost) change({ message: undefined }, true);
  }, [lost]);
  return {
    open: wanted === undefined ? null : (known ?? data ?? null),
    setOpen: (m: PeekedMessage | null) => {
      setRow(m);
      change({ message: m?.id }, search.message !== undefined);
    },
  };
}

function Meta({ queue, gone }: { queue: Queue; gone: number | null }) {
  return (
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
  );
}

function Actions({ queue, act }: { queue: Queue; act: (action: QueueAction) => void }) {
  useKeys([{ keys: "n", does: "Publish to this queue", run: () => act("publish") }]);
  const none = queue.ready === 0;
  return (
    <>
      <button type="button" className="btn wide-only" title="Publish (N)" onClick={() => act("publish")}>
        Publish
      </button>
      <button type="button" className="btn wide-only" disabled={none} onClick={() => act("move")}>
        Move
      </button>
      <button type="button" className="btn danger wide-only" disabled={none} onClick={() => act("purge")}>
        Purge
      </button>
      <Menu
        label="More actions"
        button={<Icon name="more" />}
        className="btn icon more"
        align="right"
        items={[
          { label: "Publish…", run: () => act("publish") },
          { label: "Move messages…", run: () => act("move") },
          { label: "Send dead letters back…", run: () => act("redrive") },
          { label: "Purge…", danger: true, apart: true, run: () => act("purge") },
          { label: "Delete the queue…", danger: true, run: () => act("delete") },
        ]}
      />
    </>
  );
}

function Totals({ queue }: { queue: Queue }) {
  const net = queue.in_rate - queue.out_rate;
  const full = fullIn(queue);
  const items: [string, React.ReactNode][] = [
    ["Ready", <Num key="r" value={queue.ready} tone={queue.tone} />],
    ["Unacked", <Num key="u" value={queue.unacked} />],
    ["In", <Num key="i" value={queue.in_rate} as="rate" />],
    ["Out", <Num key="o" value={queue.out_rate} as="rate" />],
    ["Net", <Num key="n" value={net} as="rateNet" tone={net > 0.05 ? queue.tone : "normal"} />],
    ["Wait p95", <Duration key="w" ns={queue.wait_p95_ns} tone={queue.tone} why="No message was delivered lately" />],
    ["Oldest unacked", <Duration key="k" ns={queue.oldest_unacked_ns} why="Nothing is unacked" />],
    ["Redelivered", <Num key="d" value={queue.redelivered} />],
    ["Bytes", <Bytes key="b" value={queue.ready_bytes} />],
  ];
  if (full !== null) items.push(["Full at this rate", `in ${upFor(full)}`]);
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
