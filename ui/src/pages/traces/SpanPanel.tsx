// The selected span: times, attributes, events, its log rows and links.

import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { LogRow, SpanRow, Trace } from "../../api/types";
import { CopyButton } from "../../parts/CopyButton";
import { count, duration, shortId } from "../../parts/format";
import { ServiceName } from "../../parts/marks";
import { oneLine } from "../../parts/rows";
import { Facts, SectionHead, SidePanel } from "../../parts/SidePanel";
import { Duration } from "../../parts/Time";
import { useSpace } from "../../time/useRange";
import { isInternal, type Node, selfTime } from "./layout";

export function SpanPanel({ trace, node, close }: { trace: Trace; node: Node; close: () => void }) {
  const { span } = node;
  const logs = trace.logs.filter((log) => log.span_id === span.span_id);
  const attributes = Object.entries(span.attributes);
  return (
    <SidePanel
      label={`Span ${span.name}`}
      width={352}
      title={
        <>
          {isInternal(span) ? null : <ServiceName name={span.service} />} <span className="span-name">{span.name}</span>
        </>
      }
      tools={
        <CopyButton text={window.location.href} label="Copy the link to this span" className="btn icon" icon="link" />
      }
      close={close}
    >
      <Facts
        rows={[
          [
            "Duration",
            <>
              {span.open ? <span className="warn">open, </span> : null}
              {duration(span.duration_ns)} <span className="meta">self {duration(selfTime(node))}</span>
            </>,
          ],
          ["Starts at", `+${duration(span.start_ns)}`],
          ["Kind", span.wait ? "wait" : span.kind],
          ["Status", <Status key="status" span={span} />],
          span.instance ? (["Instance", <InstanceLink key="instance" span={span} />] as const) : null,
          ["Recorded by", span.own ? "reactor" : "the service"],
          span.inferred ? (["Parent", "inferred: the caller sent no trace context"] as const) : null,
          ["Span", span.span_id],
        ]}
      />
      <SectionHead title="Attributes" note={count(attributes.length)} />
      <Facts
        rows={attributes.map(([name, value]) => [name, <Value key={name} name={name} value={value} />] as const)}
      />
      {span.events.length > 0 ? (
        <>
          <SectionHead title="Events" note={count(span.events.length)} />
          <Facts
            rows={span.events.map((event, i) => [
              `+${duration(event.at_ns)}${i > 0 ? " " : ""}`,
              `${event.name} ${words(event.attributes)}`,
            ])}
          />
        </>
      ) : null}
      <Logs logs={logs} span={span} trace={trace} />
      {span.links.length > 0 ? (
        <>
          <SectionHead title="Links" note={count(span.links.length)} />
          <div className="span-links">
            {span.links.map((link) => (
              <Link
                key={link.span_id}
                className="link mono"
                to="/traces/$traceId"
                params={{ traceId: link.trace_id }}
                search={{ span: link.span_id }}
              >
                {shortId(link.trace_id)} / {shortId(link.span_id)}
              </Link>
            ))}
          </div>
        </>
      ) : null}
    </SidePanel>
  );
}

const words = (attributes: Record<string, unknown>): string =>
  Object.entries(attributes)
    .map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");

function Status({ span }: { span: SpanRow }) {
  if (span.status === "error") return <span className="err">{span.status_text || "error"}</span>;
  return <>{span.status}</>;
}

function InstanceLink({ span }: { span: SpanRow }) {
  return (
    <Link className="link" to="/services" search={{ service: span.service, instance: span.instance }}>
      {span.instance}
    </Link>
  );
}

const QUEUE = "messaging.destination.name";
const MESSAGE = "messaging.message.id";

/** A value; a queue by its name is a link. */
function Value({ name, value }: { name: string; value: unknown }): ReactNode {
  const space = useSpace();
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (name === MESSAGE)
    return (
      <Link className="link" to="/queues" search={{ tab: "messages", q: text }}>
        {text}
      </Link>
    );
  if (
    name === "messaging.rabbitmq.queue" ||
    (name === QUEUE && typeof value === "string" && !value.startsWith("reactor."))
  )
    return (
      <Link className="link" to="/queues/$queueSpace/$queueName" params={{ queueSpace: space, queueName: text }}>
        {text}
      </Link>
    );
  return <span title={text}>{text}</span>;
}

function Logs({ logs, span, trace }: { logs: LogRow[]; span: SpanRow; trace: Trace }) {
  if (logs.length === 0) return null;
  return (
    <>
      <SectionHead title="Logs" note={count(logs.length)} />
      <div className="span-logs">
        {logs.map((log) => (
          <Link
            key={log.seq}
            className={`log-row ${log.level}`}
            to="/logs"
            search={{ q: `trace:${trace.trace_id}`, row: log.seq }}
            title={log.body}
          >
            <i aria-hidden="true" />
            <span className="log-time">
              +<Duration ns={Math.max(0, (log.at_us - trace.started_us) * 1000 - span.start_ns)} />
            </span>
            <span className="log-body">{oneLine(log.body)}</span>
          </Link>
        ))}
      </div>
    </>
  );
}
