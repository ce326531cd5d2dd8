// One client connection: its traffic, channels, consumers and what the client says of itself; and the way to end it.

import { keepPreviousData, useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { type ReactNode, useRef, useState } from "react";
import { get, problemFrom, send } from "../../api/client";
import type { Channel, ConnectionDetail } from "../../api/types";
import { PageHead } from "../../frame/PageHead";
import { usePaused } from "../../live/hooks";
import { Bytes } from "../../parts/Bytes";
import { Confirm } from "../../parts/Confirm";
import { TextField } from "../../parts/Form";
import { count, plural } from "../../parts/format";
import { Pill, ServiceName } from "../../parts/marks";
import { Num } from "../../parts/Num";
import { Empty, Fault, Outlines } from "../../parts/Region";
import { Segments } from "../../parts/Segments";
import { Facts } from "../../parts/SidePanel";
import { type Column, Table } from "../../parts/Table";
import { Since, Time } from "../../parts/Time";
import { pathWith } from "./action";
import { CHANNEL_COLUMNS, channelKey } from "./ChannelsTable";
import { CONSUMERS_OF_CONNECTION, consumerKey } from "./ConsumersTable";
import { valueText } from "./queue";
import type { ConnectionSearch } from "./search";
import "./queues.css";

export function ConnectionPage() {
  const { connectionId: id } = useParams({ from: "/queues/-/connections/$connectionId" });
  const held = usePaused().has("key");
  const detail = useQuery({
    queryKey: ["connection", id],
    queryFn: ({ signal }) => get<ConnectionDetail>(`connections/${id}`, {}, signal),
    refetchInterval: held ? false : 1000,
    placeholderData: keepPreviousData,
  });
  const last = useRef<{ data: ConnectionDetail; gone: number | null } | null>(null);
  if (detail.data && String(detail.data.id) === id && !detail.error) last.current = { data: detail.data, gone: null };
  const known = last.current && String(last.current.data.id) === id ? last.current : null;
  if (known && detail.error && problemFrom(detail.error).status === 404) known.gone ??= Date.now() * 1000;
  const head = (
    <>
      <Link to="/queues" search={{ tab: "connections" }} className="dim">
        Connections
      </Link>
      <span className="sep">/</span>
      <span className="mono cut">{known?.data.name ?? id}</span>
    </>
  );
  if (!known) {
    return (
      <>
        <PageHead title={head} name={`Connection ${id}`} />
        {detail.error ? (
          <Fault problem={problemFrom(detail.error)} retry={() => void detail.refetch()} />
        ) : (
          <Outlines />
        )}
      </>
    );
  }
  return <Loaded key={id} connection={known.data} gone={known.gone} head={head} />;
}

interface LoadedProps {
  connection: ConnectionDetail;
  gone: number | null;
  head: ReactNode;
}

function Loaded({ connection, gone, head }: LoadedProps) {
  const search = useSearch({ from: "/queues/-/connections/$connectionId" });
  const navigate = useNavigate({ from: "/queues/-/connections/$connectionId" });
  const change = (next: Partial<ConnectionSearch>, replace = false) =>
    void navigate({ search: (s) => ({ ...s, ...next }), replace });
  const tab = search.tab ?? "consumers";
  const unacked = connection.channel_list.reduce((n: number, c: Channel) => n + c.unacked, 0);
  return (
    <div className="connection-page">
      <PageHead
        title={head}
        name={connection.name}
        meta={
          <span className="flex pills">
            <Pill>{connection.protocol}</Pill>
            {connection.blocked ? <Pill tone="warn">blocked</Pill> : null}
            {gone === null ? null : (
              <span className="warn">
                gone since <Time at={gone} />
              </span>
            )}
          </span>
        }
        actions={
          gone === null ? (
            <button type="button" className="btn danger" onClick={() => change({ act: "close" })}>
              Close
            </button>
          ) : null
        }
      />
      <Totals connection={connection} unacked={unacked} />
      <div className="region-head line-top">
        <Segments
          label="What"
          value={tab}
          options={[
            ["consumers", `Consumers ${count(connection.consumer_list.length)}`],
            ["channels", `Channels ${count(connection.channel_list.length)}`],
            ["properties", "Client properties"],
          ]}
          onChange={(v) => change({ tab: v === "consumers" ? undefined : v }, true)}
        />
      </div>
      {tab === "consumers" ? <Consumers connection={connection} /> : null}
      {tab === "channels" ? <Channels connection={connection} /> : null}
      {tab === "properties" ? (
        <div className="queue-settings">
          <Facts rows={flat(connection.client_properties)} />
        </div>
      ) : null}
      {search.act === "close" && gone === null ? (
        <CloseDialog connection={connection} unacked={unacked} close={() => change({ act: undefined }, true)} />
      ) : null}
    </div>
  );
}

function Totals({ connection, unacked }: { connection: ConnectionDetail; unacked: number }) {
  const items: [string, ReactNode][] = [
    [
      "Service",
      connection.service ? <ServiceName key="s" name={connection.service} /> : <span className="meta">–</span>,
    ],
    [
      "In",
      <span key="i">
        <Bytes value={connection.in_bytes_rate} /> /s
      </span>,
    ],
    [
      "Out",
      <span key="o">
        <Bytes value={connection.out_bytes_rate} /> /s
      </span>,
    ],
    ["Channels", <Num key="c" value={connection.channels} />],
    ["Consumers", <Num key="n" value={connection.consumers} />],
    ["Unacked", <Num key="u" value={unacked} />],
    ["User", connection.user],
    ["From", connection.peer],
    ["Client", connection.client || "–"],
    ["Connected", <Since key="t" at={connection.since_us} />],
  ];
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

function Consumers({ connection }: { connection: ConnectionDetail }) {
  if (connection.consumer_list.length === 0)
    return <Empty title="It consumes nothing">It publishes, or fetches messages one by one with basic.get.</Empty>;
  return (
    <Table label="Consumers" rows={connection.consumer_list} columns={CONSUMERS_OF_CONNECTION} keyOf={consumerKey} />
  );
}

const REPEATED = new Set(["name", "service", "user"]);
/** Without what the page's head says already; the mode takes the room. */
const CHANNELS_HERE: Column<Channel>[] = CHANNEL_COLUMNS.filter((c) => !REPEATED.has(c.id)).map((c) => {
  if (c.id !== "mode") return c;
  const { width: _, ...rest } = c;
  return { ...rest, narrow: "rest" };
});

function Channels({ connection }: { connection: ConnectionDetail }) {
  if (connection.channel_list.length === 0)
    return <Empty title="No channel is open">Nothing can be published or consumed without one.</Empty>;
  return <Table label="Channels" rows={connection.channel_list} columns={CHANNELS_HERE} keyOf={channelKey} />;
}

/** Tables within the properties are set out one field a line. */
const flat = (properties: Record<string, unknown>): (readonly [string, string])[] =>
  Object.entries(properties).flatMap(([name, value]) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.entries(value).map(([inner, v]) => [`${name}.${inner}`, valueText(v)] as const)
      : [[name, valueText(value)] as const],
  );

interface CloseProps {
  connection: ConnectionDetail;
  unacked: number;
  close: () => void;
}

function CloseDialog({ connection, unacked, close }: CloseProps) {
  const [reason, setReason] = useState("");
  const end = useMutation({
    mutationFn: () => send("DELETE", pathWith(`connections/${connection.id}`, { reason })),
    onSuccess: close,
  });
  return (
    <Confirm
      title={`Close ${connection.name}`}
      keep="Keep it"
      act="Close the connection"
      danger
      disabled={end.isPending}
      error={end.error}
      run={() => end.mutate()}
      close={close}
    >
      <p>
        The client is told 320 CONNECTION_FORCED; most connect again by themselves.
        {unacked > 0 ? ` ${plural(unacked, "unacked message")} return to their queues at once.` : ""}
      </p>
      <TextField
        label="Reason"
        value={reason}
        onChange={setReason}
        autoFocus
        hint="Told to the client with the code."
        placeholder="closed from the dashboard"
      />
    </Confirm>
  );
}
