// A peeked message: its journey, body decoded, properties and headers.

import { Link } from "@tanstack/react-router";
import type { PeekedMessage, Queue, QueueDetail } from "../../api/types";
import { serverNowUs } from "../../live/feed";
import { CopyButton } from "../../parts/CopyButton";
import { bytes, clockMs, count, duration } from "../../parts/format";
import { Journey, type JourneyStep } from "../../parts/Journey";
import { ServiceName } from "../../parts/marks";
import { Facts, SectionHead, SidePanel } from "../../parts/SidePanel";
import { exchangeName } from "./ExchangesTable";
import { bodyText, placeOf, senderOf, traceOf, valueText } from "./queue";

interface MessagePanelProps {
  message: PeekedMessage;
  queue: Queue;
  detail: QueueDetail | null;
  close: () => void;
}

export function MessagePanel({ message, queue, detail, close }: MessagePanelProps) {
  const body = bodyText(message);
  const trace = traceOf(message);
  const type = typeof message.properties.content_type === "string" ? message.properties.content_type : body.kind;
  const named = [...Object.entries(message.properties), ...Object.entries(message.headers)].filter(
    ([, v]) => v !== null && v !== undefined,
  );
  return (
    <SidePanel
      label="Message"
      title={
        <>
          Message <span className="meta plain">place {count(placeOf(message))}</span>
        </>
      }
      tools={
        trace ? (
          <Link className="btn sm" to="/traces/$traceId" params={{ traceId: trace }}>
            Trace
          </Link>
        ) : null
      }
      close={close}
      width={384}
    >
      <SectionHead title="Journey" first />
      <Journey steps={journey(message, queue, detail)} />
      <SectionHead title="Body" note={`${type}, ${bytes(message.bytes)}`} />
      <div className="message-body">
        <pre className="code" tabIndex={0}>
          {body.text || <span className="meta">(empty)</span>}
        </pre>
        {message.truncated ? <p className="meta tiny">Cut: the whole body is {bytes(message.bytes)}.</p> : null}
        <CopyButton text={body.text} label="Copy the body">
          Copy body
        </CopyButton>
      </div>
      <SectionHead title="Properties and headers" note={named.length} />
      <Facts rows={named.map(([k, v]) => [k, valueText(v)] as const)} />
    </SidePanel>
  );
}

function journey(m: PeekedMessage, queue: Queue, detail: QueueDetail | null): JourneyStep[] {
  const sender = senderOf(m);
  const waited = m.queued_us === null ? null : Math.max(0, (serverNowUs() - m.queued_us) * 1000);
  const consumers = [...new Set((detail?.consumer_list ?? []).map((c) => c.service ?? c.connection))];
  const steps: JourneyStep[] = [
    {
      at: "done",
      what: sender ? <>Published by {sender}</> : "Published",
      note: m.redelivered ? "delivered before and returned to the queue" : null,
      time: m.queued_us === null ? "" : clockMs(m.queued_us),
    },
    {
      at: "done",
      what: (
        <>
          Routed by <span className="mono">{exchangeName(m.exchange)}</span>
        </>
      ),
      note: m.routing_key ? `key ${m.routing_key}` : "no key",
      time: "",
    },
    {
      at: "now",
      what: `Waiting, place ${count(placeOf(m))} of ${count(Math.max(queue.ready, placeOf(m)))}`,
      note:
        queue.out_rate > 0.05
          ? `next within ${duration((placeOf(m) / queue.out_rate) * 1e9)} at this rate`
          : "nothing leaves the queue now",
      time: waited === null ? "" : duration(waited),
      tone: queue.tone === "normal" ? undefined : queue.tone,
    },
  ];
  steps.push({
    at: "next",
    what:
      consumers.length === 0 ? (
        "Deliver, once a consumer is here"
      ) : (
        <>
          Deliver to <ServiceName name={consumers[0] as string} link={false} />
        </>
      ),
    note: consumers.length > 1 ? `or ${consumers.slice(1).join(", ")}` : null,
    time: "",
  });
  return steps;
}
