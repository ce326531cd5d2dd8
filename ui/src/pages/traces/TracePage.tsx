// One trace: summary, waterfall, and the selected span beside it. An unfinished trace is asked again until it is complete.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { get, problemFrom } from "../../api/client";
import type { SpanRow, Trace } from "../../api/types";
import { PageHead } from "../../frame/PageHead";
import { useKeys } from "../../keys/useKeys";
import { paused } from "../../live/pause";
import { CopyButton } from "../../parts/CopyButton";
import { count, plural, shortId } from "../../parts/format";
import { ServiceName } from "../../parts/marks";
import { QueryField } from "../../parts/QueryBar";
import { Fault, Outlines } from "../../parts/Region";
import { Segments } from "../../parts/Segments";
import { type Column, Table } from "../../parts/Table";
import { Duration, Time } from "../../parts/Time";
import {
  buildTree,
  criticalPath,
  foldOf,
  isInternal,
  linesOf,
  type Node,
  Scale,
  type TraceLine,
  titleOf,
} from "./layout";
import { SpanPanel } from "./SpanPanel";
import type { TraceSearch } from "./search";
import { Waterfall } from "./waterfall";
import "../logs/logs.css";
import "./traces.css";
import { MiddleCut } from "../../parts/MiddleCut";

export function TracePage() {
  const { traceId } = useParams({ from: "/traces/$traceId" });
  const { data, error, refetch } = useQuery({
    queryKey: ["trace", traceId],
    queryFn: ({ signal }) => get<Trace>(`traces/${traceId}`, {}, signal),
    placeholderData: keepPreviousData,
    retry: false,
    refetchInterval: (query) => (stillGrowing(query.state.data) ? 1000 : false),
  });
  useEffect(() => {
    paused.set("open", true);
    return () => paused.set("open", false);
  }, []);
  const root = data?.spans.find((s) => s.parent === null) ?? data?.spans[0];
  return (
    <div className="trace-page">
      <PageHead
        name={root ? `${titleOf(root)} · Traces` : "Trace"}
        title={
          <>
            <Link className="dim" to="/traces">
              Traces
            </Link>
            <span className="sep">/</span>
            <MiddleCut text={root ? titleOf(root) : ""} /> <span className="mono meta light">{shortId(traceId)}</span>
          </>
        }
      />
      {error && !data ? <Fault problem={problemFrom(error)} retry={() => void refetch()} /> : null}
      {!data && !error ? <Outlines rows={12} /> : null}
      {data ? <TraceView trace={data} /> : null}
    </div>
  );
}

/** Spans of reactor itself come within a moment of each other; instrumented services send theirs seconds later. */
const SETTLED_US = 15e6;
function stillGrowing(trace: Trace | undefined): boolean {
  if (!trace) return false;
  const end = trace.started_us + trace.finished_ns / 1000;
  return trace.spans.some((s) => s.open) || Date.now() * 1000 - end < SETTLED_US;
}

function TraceView({ trace }: { trace: Trace }) {
  const search = useSearch({ from: "/traces/$traceId" });
  const navigate = useNavigate({ from: "/traces/$traceId" });
  const change = (next: Partial<TraceSearch>, replace = true) =>
    void navigate({ search: (s: TraceSearch) => ({ ...s, ...next }), replace } as never);
  const roots = useMemo(() => buildTree(trace), [trace]);
  const nodes = useMemo(() => {
    const found = new Map<string, Node>();
    const stack = [...roots];
    for (let node = stack.pop(); node; node = stack.pop()) {
      found.set(node.span.span_id, node);
      stack.push(...node.children);
    }
    return found;
  }, [roots]);
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
  const lines = useMemo(
    () => linesOf(roots, { folded, logs: !search.quiet, plain: search.plain === true }),
    [roots, folded, search.quiet, search.plain],
  );
  const fold = (id: string) => {
    const next = new Set(folded);
    if (!next.delete(id)) next.add(id);
    setFolded(next);
  };
  const selected = search.span ? nodes.get(search.span) : undefined;
  const own = trace.spans.filter((s) => isInternal(s) && s.parent !== null).length;
  return (
    <div className={`trace-view${selected ? " with-side" : ""}`}>
      <Summary trace={trace} />
      <div className="query">
        <QueryField
          plain
          value={search.q ?? ""}
          onChange={(q) => change({ q: q || undefined })}
          placeholder="Find in trace"
          maxWidth={220}
        />
        <Segments
          label="View"
          value={search.view ?? "waterfall"}
          options={[
            ["waterfall", "Waterfall"],
            ["table", "Table"],
          ]}
          onChange={(view) => change({ view: view === "table" ? "table" : undefined })}
        />
        <Toggle
          on={!search.quiet}
          words="Logs inline"
          flip={() => change({ quiet: search.quiet ? undefined : true })}
        />
        <Toggle
          on={search.plain === true}
          words={
            <>
              Hide internal <b>{own}</b>
            </>
          }
          flip={() => change({ plain: search.plain ? undefined : true })}
        />
        <span className="grow" />
        <Legend />
      </div>
      {search.view === "table" ? (
        <SpanTable spans={trace.spans} search={search} change={change} />
      ) : (
        <Bars trace={trace} lines={lines} roots={roots} search={search} change={change} fold={fold} />
      )}
      {selected ? <SpanPanel trace={trace} node={selected} close={() => change({ span: undefined })} /> : null}
    </div>
  );
}

function Toggle({ on, words, flip }: { on: boolean; words: ReactNode; flip: () => void }) {
  return (
    <button type="button" className={`btn sm toggle wide-only${on ? " on" : ""}`} aria-pressed={on} onClick={flip}>
      {words}
    </button>
  );
}

function Summary({ trace }: { trace: Trace }) {
  const warnings = trace.logs.filter((log) => log.severity >= 13).length;
  const services = [...new Set(trace.spans.filter((s) => !isInternal(s)).map((s) => s.service))];
  return (
    <div className="trace-summary">
      <Item name="Started">
        <Time at={trace.started_us} as="list" />
      </Item>
      <Item name="Answered in">
        <Duration ns={trace.answered_ns} why="The root has not ended yet" />
      </Item>
      <Item name="Finished in">
        {trace.spans.some((s) => s.open) ? <span className="warn">open</span> : <Duration ns={trace.finished_ns} />}
      </Item>
      <Item name="Spans">{count(trace.spans.length)}</Item>
      <Item name="Logs">
        {count(trace.logs.length)} {warnings > 0 ? <span className="warn">{plural(warnings, "warning")}</span> : null}
      </Item>
      <Item name="Services" wide>
        {services.map((name) => (
          <ServiceName key={name} name={name} />
        ))}
      </Item>
      <span className="grow" />
      <span className="trace-tools">
        <CopyButton text={trace.trace_id} label="Copy the trace id">
          Trace id
        </CopyButton>
        <CopyButton text={JSON.stringify(trace, null, 2)} label="Copy as JSON">
          JSON
        </CopyButton>
        <Link className="btn sm" to="/logs" search={{ q: `trace:${trace.trace_id}` }}>
          Logs
        </Link>
      </span>
    </div>
  );
}
function Item({ name, wide = false, children }: { name: string; wide?: boolean; children: ReactNode }) {
  return (
    <div className={wide ? "wide-only" : undefined}>
      <span>{name}</span>
      <div>{children}</div>
    </div>
  );
}

function Legend() {
  return (
    <span className="trace-legend wide-only" aria-hidden="true">
      <span>
        <i className="service-bar" /> service
      </span>
      <span>
        <i className="own-bar" /> reactor
      </span>
      <span>
        <i className="wait-bar" /> waiting
      </span>
      <span>
        <i className="critical-bar" /> critical
      </span>
    </span>
  );
}

interface BarsProps {
  trace: Trace;
  lines: TraceLine[];
  roots: Node[];
  search: TraceSearch;
  change: (next: Partial<TraceSearch>, replace?: boolean) => void;
  fold: (id: string) => void;
}

function Bars({ trace, lines, roots, search, change, fold }: BarsProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<Waterfall | null>(null);
  const total = trace.finished_ns;
  const foldable = useMemo(() => foldOf(trace.spans, total), [trace, total]);
  const critical = useMemo(() => criticalPath(roots), [roots]);
  const [scale, setScale] = useState(() => new Scale(total, foldable));
  const [unfolded, setUnfolded] = useState(false);
  const use = unfolded ? null : foldable;
  if (scale.total !== total || JSON.stringify(scale.fold) !== JSON.stringify(use)) setScale(new Scale(total, use));
  const find = (search.q ?? "").toLowerCase();
  const hooks = useRef({ change, fold });
  hooks.current = { change, fold };
  useEffect(() => {
    const made = new Waterfall(host.current as HTMLDivElement, {
      onSelect: (span) => hooks.current.change({ span }, true),
      onFold: (span) => hooks.current.fold(span),
      onScale: setScale,
      onUnfold: () => setUnfolded(true),
    });
    view.current = made;
    return () => made.destroy();
  }, []);
  useEffect(() => {
    view.current?.setScale(scale);
    view.current?.set({ lines, critical, total, selected: search.span ?? null, find });
  }, [lines, critical, total, search.span, find, scale]);
  useEffect(() => {
    if (search.span) view.current?.reveal(search.span);
  }, [search.span]);
  useEffect(() => {
    const hit = find
      ? lines.find(
          (l) => l.kind === "span" && `${l.node.span.service} ${l.node.span.name}`.toLowerCase().includes(find),
        )
      : undefined;
    if (hit?.kind === "span") view.current?.reveal(hit.node.span.span_id);
  }, [find, lines]);
  const move = (step: number) => {
    const span = view.current?.neighbour(step);
    if (span) change({ span }, search.span !== undefined);
  };
  useKeys([
    { keys: "j", does: "Next span", run: () => move(1) },
    { keys: "ArrowDown", does: "Next span", silent: true, run: () => move(1) },
    { keys: "k", does: "Previous span", run: () => move(-1) },
    { keys: "ArrowUp", does: "Previous span", silent: true, run: () => move(-1) },
    { keys: "+", does: "Zoom in", run: () => setScale(scale.zoom(0.5, 0.6)) },
    { keys: "-", does: "Zoom out", run: () => setScale(scale.zoom(0.5, 1 / 0.6)) },
    { keys: "0", does: "Whole trace", run: () => setScale(new Scale(total, use)) },
    { keys: "c", does: "Fold the selected span", run: () => search.span && fold(search.span) },
  ]);
  return (
    <section className="region trace-bars" aria-label="Waterfall">
      <div className="wf-head meta">Span</div>
      <div className="waterfall-host" ref={host} />
      {trace.verdict ? <p className="trace-verdict line-top">{trace.verdict}</p> : null}
    </section>
  );
}

const SPAN_COLUMNS: Column<SpanRow>[] = [
  {
    id: "start",
    head: "Starts at",
    num: true,
    width: 100,
    sort: (s) => s.start_ns,
    cell: (s) => <Duration ns={s.start_ns} />,
  },
  {
    id: "service",
    head: "Service",
    width: 130,
    narrow: 96,
    sort: (s) => s.service,
    cell: (s) => <ServiceName name={s.service} />,
  },
  {
    id: "name",
    head: "Operation",
    narrow: "rest",
    sort: (s) => s.name,
    title: (s) => s.name,
    cell: (s) => <MiddleCut text={s.name} />,
  },
  {
    id: "kind",
    head: "Kind",
    width: 90,
    sort: (s) => s.kind,
    cell: (s) => <span className="meta">{s.wait ? "wait" : s.kind}</span>,
  },
  {
    id: "status",
    head: "Status",
    width: 90,
    sort: (s) => s.status,
    cell: (s) => <span className={s.status === "error" ? "err" : "meta"}>{s.open ? "open" : s.status}</span>,
  },
  {
    id: "duration",
    head: "Duration",
    num: true,
    width: 100,
    narrow: 84,
    sort: (s) => s.duration_ns,
    cell: (s) => <Duration ns={s.duration_ns} />,
  },
];

function SpanTable({
  spans,
  search,
  change,
}: {
  spans: SpanRow[];
  search: TraceSearch;
  change: (next: Partial<TraceSearch>, replace?: boolean) => void;
}) {
  const [sort, setSort] = useState<string | undefined>();
  const find = (search.q ?? "").toLowerCase();
  const rows = useMemo(
    () =>
      spans
        .filter((s) => !(search.plain && isInternal(s)) && `${s.service} ${s.name}`.toLowerCase().includes(find))
        .sort((a, b) => a.start_ns - b.start_ns),
    [spans, find, search.plain],
  );
  return (
    <section className="region trace-bars" aria-label="Spans">
      <Table
        label="Spans by start"
        rows={rows}
        columns={SPAN_COLUMNS}
        keyOf={(s) => s.span_id}
        sort={sort}
        onSort={setSort}
        selected={search.span}
        onOpen={(s) => change({ span: s.span_id }, search.span !== undefined)}
      />
    </section>
  );
}
