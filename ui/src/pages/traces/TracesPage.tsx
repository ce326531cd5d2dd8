// Traces of the range: duration over time, then one row a trace, newest first. New ones wait, counted, while the reader reads.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { get, problemFrom } from "../../api/client";
import type { Page, Scatter, TraceRow } from "../../api/types";
import { PageHead } from "../../frame/PageHead";
import { useFreshCount, useOverview, usePaused, useRows } from "../../live/hooks";
import { paused } from "../../live/pause";
import { count, countShort, duration, plural, shortId } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { Glyph, ServiceMark } from "../../parts/marks";
import { NoneInRange } from "../../parts/NoneInRange";
import { QueryBar } from "../../parts/QueryBar";
import { Empty, Fault, Outlines } from "../../parts/Region";
import { ScatterPlot } from "../../parts/scatter";
import { type Column, Table } from "../../parts/Table";
import { Duration, Time } from "../../parts/Time";
import { tokens } from "../../query/tokens";
import { useRange, useSetRange, useSpace } from "../../time/useRange";
import { useMarks } from "../../time/useTape";
import type { TracesSearch } from "./search";
import { TracePanel } from "./TracePanel";
import "../logs/logs.css";
import "./traces.css";
import { MiddleCut } from "../../parts/MiddleCut";

/** Rows shown at once; the footer says how many more match. */
const SHOWN = 500;

export function TracesPage() {
  const space = useSpace();
  const search = useSearch({ from: "/traces" });
  const navigate = useNavigate({ from: "/traces" });
  const range = useRange(5);
  const query = search.q ?? "";
  const change = useCallback(
    (next: Partial<TracesSearch>, replace = false) => void navigate({ search: (s) => ({ ...s, ...next }), replace }),
    [navigate],
  );
  const live = range.span.live;
  const list = useTraceRows(space, query, live, search.trace !== undefined);
  const summary = useSummary(space, query);
  const problem = list.problem ?? summary.problem;
  return (
    <div className={`traces${search.trace ? " with-side" : ""}`}>
      <PageHead
        title="Traces"
        meta={
          summary.data
            ? `${countShort(summary.data.matched)} match of ${countShort(summary.data.matched + summary.data.outside)} kept`
            : undefined
        }
      />
      <QueryBar
        value={query}
        onChange={(q, replace) => change({ q: q || undefined }, replace)}
        placeholder="Filter: duration>100ms, root:/orders, service:orders, status:error, -root:/healthz"
        problem={problem}
      />
      <TraceScatter space={space} query={query} selected={search.trace ?? null} change={change} />
      <section className="region trace-list" aria-label="Traces">
        {list.fault && !problem?.position ? <Fault problem={list.fault} /> : null}
        {!list.ready ? <Outlines rows={12} /> : null}
        {list.ready && list.rows.length === 0 && !problem ? (
          <Nothing query={query} outside={summary.data?.outside ?? 0} change={change} />
        ) : null}
        {list.rows.length > 0 ? (
          <div
            className="trace-rows"
            onScrollCapture={(event) => list.onScroll((event.target as HTMLElement).scrollTop)}
          >
            {list.newer > 0 ? (
              <button type="button" className="follow top" onClick={() => paused.resume()}>
                <Icon name="up" size={12} /> {count(list.newer)} newer
              </button>
            ) : null}
            <Table
              label="Traces, newest first"
              rows={list.rows}
              columns={COLUMNS}
              keyOf={(row) => row.trace_id}
              sort={search.sort}
              onSort={(sort) => change({ sort }, true)}
              selected={search.trace}
              onOpen={(row) => change({ trace: row.trace_id }, search.trace !== undefined)}
            />
          </div>
        ) : null}
        <Footer rows={list.rows.length} matched={summary.data?.matched ?? null} />
      </section>
      {search.trace ? (
        <TracePanel id={search.trace} close={() => change({ trace: undefined })} query={query} change={change} />
      ) : null}
    </div>
  );
}

interface List {
  rows: TraceRow[];
  ready: boolean;
  newer: number;
  problem: ReturnType<typeof problemFrom> | null;
  fault: ReturnType<typeof problemFrom> | null;
  onScroll: (top: number) => void;
}

/** The newest traces: from the live feed while the range reaches to now, else from the API. */
function useTraceRows(space: string, query: string, live: boolean, reading: boolean): List {
  const { span } = useRange(5);
  const [feed, view] = useRows<TraceRow>(
    { channel: "traces", query, space, backfill: SHOWN },
    { capacity: 5_000, key: "trace_id" },
  );
  const reasons = usePaused();
  const [heldAt, setHeldAt] = useState<number | null>(null);
  const [scrolled, setScrolled] = useState(false);
  const hold = view.begun && (reading || scrolled || reasons.has("key"));
  useEffect(() => setHeldAt((held) => (hold ? (held ?? feed.get().next) : null)), [hold, feed]);
  useEffect(() => paused.set("scroll", live && scrolled), [scrolled, live]);
  useEffect(() => paused.set("open", live && reading), [reading, live]);
  useEffect(() => paused.set("range", !live), [live]);
  useEffect(
    () => () => {
      for (const reason of ["scroll", "open", "range"] as const) paused.set(reason, false);
    },
    [],
  );
  useEffect(() => {
    feed.follow(live ? SHOWN : 0);
    return () => feed.follow(0);
  }, [feed, live]);
  const beat = view.received + view.revision;
  const end = heldAt ?? view.next;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the beat stands for the ring's content
  const streamed = useMemo(() => {
    const rows: TraceRow[] = [];
    const first = Math.max(view.first, end - SHOWN);
    feed.want(first, end);
    for (let at = end - 1; at >= first; at -= 1) {
      const row = feed.peek(at)?.row;
      if (row && row.started_us >= span.from_us) rows.push(row);
    }
    return rows.sort((a, b) => b.started_us - a.started_us);
  }, [feed, view, end, beat, span.from_us]);
  const from = Math.round(span.from_us);
  const to = Math.round(span.to_us);
  const fixed = useQuery({
    queryKey: ["traces", space, query, from, to],
    queryFn: ({ signal }) =>
      get<Page<TraceRow>>("traces", { query, space, from_us: from, to_us: to, limit: SHOWN }, signal),
    enabled: !live,
    placeholderData: keepPreviousData,
    retry: false,
  });
  const newer = live && heldAt !== null ? Math.max(0, view.next - heldAt) : 0;
  useFreshCount(newer);
  const past = useMemo(() => [...(fixed.data?.rows ?? [])].reverse(), [fixed.data]);
  const fixedProblem = fixed.error ? problemFrom(fixed.error) : null;
  return {
    rows: live ? streamed : past,
    ready: live ? view.begun : fixed.data !== undefined || fixedProblem !== null,
    newer,
    problem: live ? view.problem : fixedProblem,
    fault: fixedProblem,
    onScroll: (top) => setScrolled(top > 14),
  };
}

function useSummary(space: string, query: string) {
  const { span } = useRange(5);
  const { data, error } = useQuery({
    queryKey: ["trace-summary", space, query, Math.round(span.from_us / 5e6), span.live ? "now" : span.to_us],
    queryFn: ({ signal }) =>
      get<Page<TraceRow>>(
        "traces",
        { query, space, from_us: Math.round(span.from_us), to_us: span.live ? null : Math.round(span.to_us), limit: 1 },
        signal,
      ),
    placeholderData: keepPreviousData,
    retry: false,
  });
  return { data, problem: error ? problemFrom(error) : null };
}

interface ScatterProps {
  space: string;
  query: string;
  selected: string | null;
  change: (next: Partial<TracesSearch>) => void;
}

function TraceScatter({ space, query, selected, change }: ScatterProps) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<ScatterPlot | null>(null);
  const setRange = useSetRange();
  const { span } = useRange(5);
  const { markers } = useMarks();
  const from_us = Math.round(span.from_us);
  const to_us = Math.round(span.to_us);
  const { data } = useQuery({
    queryKey: ["trace-scatter", space, query, from_us, to_us],
    queryFn: ({ signal }) => get<Scatter>("traces/scatter", { query, space, from_us, to_us, points: 1500 }, signal),
    placeholderData: keepPreviousData,
    retry: false,
  });
  const hooks = useRef({ query, change, setRange });
  hooks.current = { query, change, setRange };
  useEffect(() => {
    const made = new ScatterPlot(host.current as HTMLDivElement, {
      onPick: (trace) => hooks.current.change({ trace }),
      onBox: (box) => {
        const kept = tokens(hooks.current.query).filter((t) => t.field !== "duration");
        const low = `duration>=${Math.floor(box.low_ns / 1000)}us`;
        const high = `duration<=${Math.ceil(box.high_ns / 1000)}us`;
        hooks.current.change({ q: [...kept.map((t) => t.text), low, high].join(" ") });
        hooks.current.setRange({ from: Math.round(box.from_us / 1000), to: Math.round(box.to_us / 1000) }, true);
      },
    });
    plot.current = made;
    return () => made.destroy();
  }, []);
  const points = data?.points;
  useEffect(() => {
    plot.current?.set({ span: { from_us, to_us }, points: points ?? [], markers, selected });
  }, [points, from_us, to_us, markers, selected]);
  return (
    <div className="trace-scatter">
      <div ref={host} role="img" aria-label="Duration of each trace over time; the table below has the same traces" />
    </div>
  );
}

const SHORTEST = 5;
const LONGEST = 11;

/** Length of a duration's bar, 0 to 1, on a log scale from 100 µs to 100 s. */
const barLength = (ns: number) =>
  Math.min(1, Math.max(0.03, (Math.log10(Math.max(1, ns)) - SHORTEST) / (LONGEST - SHORTEST)));

function Bar({ row }: { row: TraceRow }) {
  const kind = row.open ? "open" : row.errors > 0 ? "failed" : "";
  return (
    <span className="trace-duration">
      <i className={kind} style={{ width: `${Math.round(barLength(row.duration_ns) * 78)}px` }} />
      <Duration ns={row.duration_ns} />
    </span>
  );
}

function Status({ row }: { row: TraceRow }) {
  if (row.open) return <span className="warn">open</span>;
  if (row.errors > 0)
    return (
      <span className="state err">
        <Glyph kind="failing" /> {row.status}
      </span>
    );
  return <span className="meta">{row.status}</span>;
}

const COLUMNS: Column<TraceRow>[] = [
  {
    id: "started",
    head: "Started",
    width: 112,
    narrow: 112,
    sort: (row) => row.started_us,
    cell: (row) => (
      <span className="dim">
        <Time at={row.started_us} as="list" />
      </span>
    ),
  },
  {
    id: "root",
    head: "Root",
    narrow: "rest",
    sort: (row) => row.request ?? row.root,
    title: (row) => `${row.root_service} ${row.request ?? ""}\n${row.root}\n${row.trace_id}`,
    cell: (row) => (
      <span className="with-rest">
        <MiddleCut text={row.request ?? row.root} />
        <span className="mono-11 meta wide-only">{shortId(row.trace_id)}</span>
      </span>
    ),
  },
  {
    id: "services",
    head: "Services",
    width: 150,
    title: (row) => row.services.join(", "),
    cell: (row) => row.services.map((name) => <ServiceMark key={name} name={name} />),
  },
  { id: "spans", head: "Spans", num: true, width: 60, sort: (row) => row.spans, cell: (row) => count(row.spans) },
  { id: "status", head: "Status", width: 76, sort: (row) => row.status, cell: (row) => <Status row={row} /> },
  {
    id: "duration",
    head: "Duration",
    num: true,
    width: 168,
    narrow: 96,
    sort: (row) => row.duration_ns,
    title: (row) => duration(row.duration_ns),
    cell: (row) => <Bar row={row} />,
  },
];

function Footer({ rows, matched }: { rows: number; matched: number | null }) {
  const { telemetry, sample_rate } = useOverview();
  if (matched === null) return null;
  const spans = telemetry?.spans;
  return (
    <footer className="trace-foot line-top">
      {rows < matched ? `The newest ${count(rows)} of ` : ""}
      {plural(matched, "match", "matches")};{" "}
      {spans
        ? `${countShort(spans.kept)} of ${countShort(spans.received)} spans kept, ${countShort(spans.evicted)} evicted, ${countShort(spans.dropped)} dropped.`
        : ""}
      {sample_rate !== undefined && sample_rate < 1
        ? ` reactor's own traces are sampled at ${(sample_rate * 100).toPrecision(2)} %.`
        : ""}
    </footer>
  );
}

interface NothingProps {
  query: string;
  outside: number;
  change: (next: Partial<TracesSearch>) => void;
}

function Nothing({ query, outside, change }: NothingProps) {
  if (tokens(query).length === 0 && outside === 0)
    return (
      <Empty title="No traces in this range">
        Every request through the gateway and every message gets one, whether a service is instrumented or not. Call a
        service, or point an OpenTelemetry SDK here.
      </Empty>
    );
  return (
    <NoneInRange
      query={query}
      where="in the range"
      outside={`${plural(outside, "trace")} outside the filter.`}
      onQuery={(q) => change({ q })}
    />
  );
}
