// One log row in full: message, links to its trace and span, fields to filter by, and what the same trace said just before.

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { get } from "../../api/client";
import type { LogRow, Page } from "../../api/types";
import { useKeys } from "../../keys/useKeys";
import { CopyButton } from "../../parts/CopyButton";
import { clockMs, duration, shortId } from "../../parts/format";
import { MiddleCut } from "../../parts/MiddleCut";
import { ServiceName } from "../../parts/marks";
import { oneLine } from "../../parts/rows";
import { SectionHead, SidePanel } from "../../parts/SidePanel";
import { useZone } from "../../parts/zone";
import { withTerm } from "../../query/tokens";
import { useSpace } from "../../time/useRange";
import type { Change } from "./LogsPage";

interface LogPanelProps {
  row: LogRow;
  query: string;
  change: Change;
  close: () => void;
  open: (row: LogRow) => void;
}

const EXCEPTION = ["exception.type", "exception.message", "exception.stacktrace"];

export function LogPanel({ row, query, change, close, open }: LogPanelProps) {
  const zone = useZone();
  const filter = (field: string, value: string, negated: boolean) =>
    change({ q: withTerm(query, field, value, negated), row: undefined });
  const fields = fieldsOf(row);
  const stack = row.attributes["exception.stacktrace"];
  return (
    <SidePanel
      label="Log row"
      title={
        <>
          <span className={`log-tag ${row.level}`}>{row.level}</span>{" "}
          <span className="mono">{clockMs(row.at_us, zone)}</span>
        </>
      }
      tools={
        <>
          <CopyButton text={JSON.stringify(row, null, 2)} label="Copy as JSON" className="btn icon" />
          <CopyButton text={window.location.href} label="Copy the link to this row" className="btn icon" icon="link" />
        </>
      }
      close={close}
    >
      <pre className="log-message">{row.body}</pre>
      {row.trace_id ? <TraceLinks row={row} /> : null}
      <SectionHead title="Fields" note={fields.length} />
      <dl className="log-fields">
        {fields.map(([name, value]) => (
          <div key={name}>
            <dt title={name}>{name}</dt>
            <dd>{name === "service" ? <ServiceName name={value} /> : <MiddleCut text={oneLine(value)} />}</dd>
            <span>
              <button
                type="button"
                aria-label={`Filter to ${name} ${value}`}
                onClick={() => filter(name, value, false)}
              >
                +
              </button>
              <button
                type="button"
                aria-label={`Filter out ${name} ${value}`}
                onClick={() => filter(name, value, true)}
              >
                −
              </button>
            </span>
          </div>
        ))}
      </dl>
      {typeof stack === "string" ? (
        <>
          <SectionHead title="Exception" />
          <pre className="log-stack">
            <b>{[row.attributes["exception.type"], row.attributes["exception.message"]].filter(Boolean).join(": ")}</b>
            {`\n${stack}`}
          </pre>
        </>
      ) : null}
      {row.trace_id ? <JustBefore row={row} open={open} /> : null}
    </SidePanel>
  );
}

function fieldsOf(row: LogRow): [string, string][] {
  const fields: [string, string][] = [["service", row.service]];
  if (row.instance) fields.push(["instance", row.instance]);
  if (row.scope) fields.push(["scope", row.scope]);
  for (const [name, value] of Object.entries(row.attributes))
    if (!EXCEPTION.includes(name)) fields.push([name, typeof value === "string" ? value : JSON.stringify(value)]);
  return fields;
}

function TraceLinks({ row }: { row: LogRow }) {
  const traceId = row.trace_id as string;
  useKeys([{ keys: "t", does: "Trace of the row", run: () => document.getElementById("log-trace")?.click() }]);
  return (
    <div className="log-links">
      <Link id="log-trace" className="btn sm" to="/traces/$traceId" params={{ traceId }} title="Open the trace (t)">
        Trace <span className="mono meta">{shortId(traceId)}</span>
      </Link>
      {row.span_id ? (
        <Link className="btn sm" to="/traces/$traceId" params={{ traceId }} search={{ span: row.span_id }}>
          Span <span className="mono meta">{shortId(row.span_id)}</span>
        </Link>
      ) : null}
    </div>
  );
}

const BEFORE = 5;

function JustBefore({ row, open }: { row: LogRow; open: (row: LogRow) => void }) {
  const space = useSpace();
  const { data } = useQuery({
    queryKey: ["log-before", row.seq],
    queryFn: ({ signal }) =>
      get<Page<LogRow>>("logs", { query: `trace:${row.trace_id}`, space, before: row.seq, limit: BEFORE }, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (!data || data.rows.length === 0) return null;
  return (
    <>
      <SectionHead title="Just before, same trace" />
      <div className="log-before">
        {data.rows.map((before) => (
          <button type="button" key={before.seq} className={`log-row ${before.level}`} onClick={() => open(before)}>
            <i aria-hidden="true" />
            <span className="log-time">-{duration(Math.max(0, row.at_us - before.at_us) * 1000)}</span>
            <span className="log-body">{oneLine(before.body)}</span>
          </button>
        ))}
      </div>
    </>
  );
}
