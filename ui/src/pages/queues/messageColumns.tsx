// Columns of the lists of messages: where each stands or who holds it, and what it is.

import { Link } from "@tanstack/react-router";
import type { PeekedMessage } from "../../api/types";
import { Bytes } from "../../parts/Bytes";
import { shortId } from "../../parts/format";
import { MiddleCut } from "../../parts/MiddleCut";
import { ServiceName } from "../../parts/marks";
import { Num } from "../../parts/Num";
import type { Column } from "../../parts/Table";
import { Duration } from "../../parts/Time";
import { ConnectionName } from "./links";
import { LONG_HELD_NS, placeOf, senderOf, traceOf } from "./queue";

export interface Row extends PeekedMessage {
  /** When it was looked at. */
  at_us: number;
}

const PLACE: Column<Row> = {
  id: "place",
  head: "Place",
  num: true,
  width: 76,
  narrow: 56,
  title: (m) => (m.redelivered ? "Delivered before and returned" : undefined),
  cell: (m) => (
    <>
      {m.redelivered ? <span className="warn">↺ </span> : null}
      <Num value={placeOf(m)} />
    </>
  ),
};
const WAITING: Column<Row> = {
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
};
const HELD: Column<Row> = {
  id: "held",
  head: "Held",
  num: true,
  width: 84,
  narrow: 76,
  cell: (m) => <Duration ns={m.holder?.held_ns} tone={(m.holder?.held_ns ?? 0) > LONG_HELD_NS ? "warn" : "normal"} />,
};
const HOLDER: Column<Row> = {
  id: "holder",
  head: "Held by",
  width: 200,
  cell: (m) => (m.holder ? <ConnectionName id={m.holder.connection_id} name={m.holder.connection} /> : null),
};
const CHANNEL: Column<Row> = {
  id: "channel",
  head: "Channel",
  num: true,
  width: 76,
  cell: (m) => <Num value={m.holder?.channel} />,
};
const KEY: Column<Row> = {
  id: "key",
  head: "Key",
  width: 150,
  narrow: 116,
  cell: (m) => (m.routing_key ? <MiddleCut text={m.routing_key} /> : <span className="mono meta">(empty)</span>),
};
const BODY: Column<Row> = {
  id: "body",
  head: "Body",
  narrow: "rest",
  cell: (m) => <span className="mono dim">{m.encoding === "utf8" ? m.body : "binary"}</span>,
};
const SIZE: Column<Row> = { id: "size", head: "Size", num: true, width: 78, cell: (m) => <Bytes value={m.bytes} /> };
const from = (services: ReadonlySet<string>): Column<Row> => ({
  id: "from",
  head: "From",
  width: 96,
  cell: (m) => {
    const sender = senderOf(m);
    if (sender === null) return <span className="meta">–</span>;
    return services.has(sender) ? <ServiceName name={sender} /> : <span className="mono dim">{sender}</span>;
  },
});
const TRACE: Column<Row> = {
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
};

export const columnsFor = (services: ReadonlySet<string>, unacked: boolean): Column<Row>[] =>
  unacked ? [HELD, HOLDER, CHANNEL, KEY, BODY, SIZE, TRACE] : [PLACE, WAITING, KEY, BODY, SIZE, from(services), TRACE];
