// A message beside its list: its journey, who holds it, body decoded, properties and headers, and what can be done with it.

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { get } from "../../api/client";
import type { PeekedMessage, QueueDetail } from "../../api/types";
import { CopyButton } from "../../parts/CopyButton";
import { bytes, count, duration } from "../../parts/format";
import { Journey } from "../../parts/Journey";
import { Segments } from "../../parts/Segments";
import { Facts, SectionHead, SidePanel } from "../../parts/SidePanel";
import type { Done } from "./action";
import { ConnectionName } from "./links";
import { MessageActions } from "./MessageActions";
import { journeyOf } from "./messageJourney";
import { type BodyView, bodyAs, bodyViews, placeOf, traceOf, valueText } from "./queue";

interface MessagePanelProps {
  message: PeekedMessage;
  queue: QueueDetail;
  path: string;
  close: () => void;
  move: (ids: number[]) => void;
  done: (done: Done) => void;
}

export function MessagePanel({ message: row, queue, path, close, move, done }: MessagePanelProps) {
  const message = useWhole(row, path);
  const trace = traceOf(message);
  const named = [...Object.entries(message.properties), ...Object.entries(message.headers)].filter(
    ([, v]) => v !== null && v !== undefined,
  );
  return (
    <SidePanel
      label="Message"
      title={
        <>
          Message{" "}
          <span className="meta plain">
            {message.holder ? `delivery ${count(message.holder.delivery_tag)}` : `place ${count(placeOf(message))}`}
          </span>
        </>
      }
      tools={
        <>
          <Link className="btn sm" to="/queues" search={{ tab: "messages", q: wordFor(message) }}>
            Follow
          </Link>
          {trace ? (
            <Link className="btn sm" to="/traces/$traceId" params={{ traceId: trace }}>
              Trace
            </Link>
          ) : null}
          {message.holder ? null : (
            <MessageActions message={message} queue={queue} path={path} close={close} move={move} done={done} />
          )}
        </>
      }
      close={close}
      width={384}
    >
      <SectionHead title="Journey" first />
      <Journey steps={journeyOf(message, queue)} />
      {message.holder ? <Held message={message} /> : null}
      <MessageBody message={message} />
      <SectionHead title="Properties and headers" note={named.length} />
      <Facts rows={named.map(([k, v]) => [k, valueText(v)] as const)} />
    </SidePanel>
  );
}

/** What finds a message among those followed: its id, its trace, or its key. */
function wordFor(m: PeekedMessage): string {
  const id = m.properties.message_id;
  return typeof id === "string" && id !== "" ? id : (traceOf(m) ?? m.routing_key);
}

/** A cut body is fetched whole, as long as the message is there. */
function useWhole(row: PeekedMessage, path: string): PeekedMessage {
  const { data } = useQuery({
    queryKey: ["message", path, row.id],
    queryFn: ({ signal }) => get<PeekedMessage>(`${path}/messages/${row.id}`, {}, signal),
    enabled: row.truncated && row.holder === null,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  return data ? { ...data, position: row.position } : row;
}

function Held({ message }: { message: PeekedMessage }) {
  const h = message.holder;
  if (!h) return null;
  return (
    <>
      <SectionHead title="Held by" />
      <Facts
        plain
        rows={[
          ["Connection", <ConnectionName key="c" id={h.connection_id} name={h.connection} />],
          ["Consumer", h.consumer ?? "none: fetched by basic.get, or cancelled since"],
          ["Channel", `${h.channel}, delivery tag ${count(h.delivery_tag)}`],
          ["For", duration(h.held_ns)],
        ]}
      />
      <p className="note meta">
        It returns to this queue when it is rejected with requeue, or when its channel or the{" "}
        <Link
          to="/queues/-/connections/$connectionId"
          params={{ connectionId: String(h.connection_id) }}
          search={{ act: "close" }}
        >
          connection is closed
        </Link>
        .
      </p>
    </>
  );
}

const VIEW_NAMES: Record<BodyView, string> = { json: "JSON", text: "Text", hex: "Hex" };

type Bodied = Pick<PeekedMessage, "body" | "encoding" | "bytes" | "truncated" | "properties">;

export function MessageBody({ message }: { message: Bodied }) {
  const views = bodyViews(message);
  const [chosen, setChosen] = useState<BodyView | null>(null);
  const view = chosen && views.includes(chosen) ? chosen : (views[0] as BodyView);
  const text = bodyAs(message, view);
  const type = typeof message.properties.content_type === "string" ? message.properties.content_type : "no type";
  return (
    <>
      <SectionHead title="Body" note={`${type}, ${bytes(message.bytes)}`} />
      <div className="message-body">
        <div className="body-tools">
          <Segments
            label="Show the body as"
            value={view}
            options={views.map((v) => [v, VIEW_NAMES[v]] as const)}
            onChange={setChosen}
          />
          <span className="grow" />
          <CopyButton text={text} label="Copy the body">
            Copy
          </CopyButton>
        </div>
        <pre className="code" tabIndex={0} role="region" aria-label="Body">
          {text || <span className="meta">(empty)</span>}
        </pre>
        {message.truncated ? <p className="meta tiny">Cut: the whole body is {bytes(message.bytes)}.</p> : null}
      </div>
    </>
  );
}
