// A trace beside the list: how long, where the time went, and how that compares with others of its root.

import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { get, problemFrom } from "../../api/client";
import type { Scatter, SpanRow, Trace } from "../../api/types";
import { useKeys } from "../../keys/useKeys";
import { useSlot } from "../../live/slots";
import { count, duration, plural, share } from "../../parts/format";
import { MiddleCut } from "../../parts/MiddleCut";
import { ServiceName, slotColour } from "../../parts/marks";
import { Fault, Outlines } from "../../parts/Region";
import { Facts, SectionHead, SidePanel } from "../../parts/SidePanel";
import { Duration, Since, Time } from "../../parts/Time";
import { term, withTerm } from "../../query/tokens";
import { useRange, useSpace } from "../../time/useRange";
import { buildTree, isInternal, linesOf, longestStep, titleOf } from "./layout";
import type { TracesSearch } from "./search";

interface TracePanelProps {
  id: string;
  query: string;
  change: (next: Partial<TracesSearch>) => void;
  close: () => void;
}

export function TracePanel({ id, query, change, close }: TracePanelProps) {
  const navigate = useNavigate();
  const { data, error } = useQuery({
    queryKey: ["trace", id],
    queryFn: ({ signal }) => get<Trace>(`traces/${id}`, {}, signal),
    retry: false,
  });
  const open = () => void navigate({ to: "/traces/$traceId", params: { traceId: id } });
  useKeys([{ keys: "o", does: "Open the trace", run: open }]);
  const root = data?.spans.find((s) => s.parent === null) ?? data?.spans[0];
  return (
    <SidePanel
      label={`Trace ${id}`}
      width={400}
      title={<MiddleCut text={root ? titleOf(root) : id} />}
      tools={
        <Link className="btn sm" to="/traces/$traceId" params={{ traceId: id }}>
          Open <kbd>O</kbd>
        </Link>
      }
      close={close}
    >
      {error ? <Fault problem={problemFrom(error)} /> : null}
      {!data && !error ? <Outlines /> : null}
      {data && root ? <Body trace={data} root={root} query={query} change={change} /> : null}
    </SidePanel>
  );
}

function Body({
  trace,
  root,
  query,
  change,
}: {
  trace: Trace;
  root: SpanRow;
  query: string;
  change: (next: Partial<TracesSearch>) => void;
}) {
  const longest = longestStep(trace.spans, trace.finished_ns);
  const warnings = trace.logs.filter((log) => log.severity >= 13).length;
  const status = root.attributes["http.response.status_code"];
  return (
    <>
      <Facts
        rows={[
          ["Trace", trace.trace_id],
          [
            "Started",
            <>
              <Time at={trace.started_us} as="list" />, <Since at={trace.started_us} suffix=" ago" />
            </>,
          ],
          [
            "Answered in",
            <>
              <Duration ns={trace.answered_ns} why="The root has not ended yet" />
              {status === undefined ? null : `, status ${String(status)}`}
            </>,
          ],
          ["Finished in", duration(trace.finished_ns)],
          longest
            ? ([
                "Longest step",
                <span key="longest" className={longest.share > 0.6 && longest.span.wait ? "warn" : undefined}>
                  {longest.span.name} {duration(longest.span.duration_ns)}, {share(longest.share)}
                </span>,
              ] as const)
            : null,
          ["Logs", `${count(trace.logs.length)}${warnings > 0 ? `, ${plural(warnings, "warning")}` : ""}`],
        ]}
      />
      <SectionHead title="Where the time went" />
      <Preview trace={trace} />
      <Compared root={root} trace={trace} />
      <div className="log-links">
        <button type="button" className="btn sm" onClick={() => change({ q: withTerm(query, "root", root.name) })}>
          Only this root
        </button>
        <button
          type="button"
          className="btn sm"
          onClick={() => change({ q: withTerm(query, "root", root.name, true) })}
        >
          Without this root
        </button>
      </div>
    </>
  );
}

const PREVIEW_ROWS = 12;

function Preview({ trace }: { trace: Trace }) {
  const lines = useMemo(() => {
    const all = linesOf(buildTree(trace), { folded: new Set(), logs: false, plain: false });
    const spans = all.flatMap((line) => (line.kind === "span" ? [line.node] : []));
    // The longest steps, in reading order.
    const kept = new Set([...spans].sort((a, b) => b.span.duration_ns - a.span.duration_ns).slice(0, PREVIEW_ROWS - 1));
    return spans.filter((node) => kept.has(node) || node.depth === 0).slice(0, PREVIEW_ROWS);
  }, [trace]);
  const total = Math.max(1, trace.finished_ns);
  return (
    <div className="trace-preview">
      {lines.map(({ span, depth }) => (
        <PreviewRow key={span.span_id} span={span} depth={depth} total={total} />
      ))}
      <div className="trace-preview-axis">
        <span>0</span>
        <span>{duration(total / 2)}</span>
        <span>{duration(total)}</span>
      </div>
    </div>
  );
}

function PreviewRow({ span, depth, total }: { span: SpanRow; depth: number; total: number }) {
  const slot = useSlot(span.service);
  const internal = isInternal(span);
  const kind = span.wait ? "wait" : internal ? "own" : "";
  return (
    <div>
      <span className="cut" style={{ paddingLeft: Math.min(depth, 8) * 10 }} title={`${span.service} ${span.name}`}>
        {internal ? <span className="meta">{span.name}</span> : null}
        {internal ? null : (
          <>
            <ServiceName name={span.service} /> <span className="dim">{span.name}</span>
          </>
        )}
      </span>
      <span>
        <i
          className={kind}
          style={{
            left: `${(span.start_ns / total) * 100}%`,
            width: `max(2px, ${(span.duration_ns / total) * 100}%)`,
            ...(kind === "" ? { background: slotColour(slot) } : {}),
          }}
        />
      </span>
    </div>
  );
}

function Compared({ root, trace }: { root: SpanRow; trace: Trace }) {
  const space = useSpace();
  const { span } = useRange(30);
  const { data } = useQuery({
    queryKey: ["trace-compare", space, root.name, Math.round(span.from_us / 30e6)],
    queryFn: ({ signal }) =>
      get<Scatter>(
        "traces/scatter",
        { query: term("root", root.name), space, from_us: Math.round(span.from_us), points: 5000 },
        signal,
      ),
    retry: false,
  });
  if (!data || data.points.length < 2) return null;
  const sorted = data.points.map((p) => p.duration_ns).sort((a, b) => a - b);
  const at = (k: number) => sorted[Math.floor((sorted.length - 1) * k)] ?? null;
  const p95 = at(0.95);
  return (
    <>
      <SectionHead title={`Compared with ${plural(data.matched, "trace")} of this root in the range`} />
      <table className="table trace-compare">
        <thead>
          <tr>
            <th scope="col">Step</th>
            <th scope="col" className="num">
              This
            </th>
            <th scope="col" className="num">
              p50
            </th>
            <th scope="col" className="num">
              p95
            </th>
          </tr>
        </thead>
        <tbody>
          <tr>
            <td>Whole trace</td>
            <td className="num">
              <Duration ns={trace.finished_ns} tone={p95 !== null && trace.finished_ns > p95 ? "warn" : "normal"} />
            </td>
            <td className="num">
              <Duration ns={at(0.5)} />
            </td>
            <td className="num">
              <Duration ns={p95} />
            </td>
          </tr>
        </tbody>
      </table>
    </>
  );
}
