// Every log record of the space in the range: filtered by the server, live at the bottom, holding still while it is read.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useRef, useState } from "react";
import { get, problemFrom } from "../../api/client";
import type { Histogram, LogRow, Problem } from "../../api/types";
import { PageHead } from "../../frame/PageHead";
import { useKeys } from "../../keys/useKeys";
import { useFreshCount, useRows, useStore } from "../../live/hooks";
import { paused } from "../../live/pause";
import { axisNumber } from "../../parts/axis";
import { ChartView } from "../../parts/ChartView";
import type { ChartData } from "../../parts/chart";
import { count, countShort, duration, plural } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { NoneInRange } from "../../parts/NoneInRange";
import { QueryBar } from "../../parts/QueryBar";
import { Empty, Fault, Outlines } from "../../parts/Region";
import { LogRows, type RowSource, type RowsState } from "../../parts/rows";
import { tokens, withTerm } from "../../query/tokens";
import { cursor } from "../../time/cursor";
import { useRange, useSpace } from "../../time/useRange";
import { useMarks } from "../../time/useTape";
import { LogPanel } from "./LogPanel";
import { type LogQuery, logPage, PastRows } from "./past";
import type { LogsSearch } from "./search";
import "./logs.css";

const BACKFILL = 500;
const CAPACITY = 50_000;
const BUCKETS = 90;

export type Change = (next: Partial<LogsSearch>, replace?: boolean) => void;

export function LogsPage() {
  const space = useSpace();
  const search = useSearch({ from: "/logs" });
  const navigate = useNavigate({ from: "/logs" });
  const range = useRange(5);
  const live = range.brush === null ? range.window.live : range.brush.live;
  const query = search.q ?? "";
  const [problem, setProblem] = useState<Problem | null>(null);
  const change: Change = (next, replace = false) => void navigate({ search: (s) => ({ ...s, ...next }), replace });
  const list = { space, query, onProblem: setProblem, row: search.row, change };
  const histogram = useHistogram(space, query);
  const { data: summary } = useSummary(space, query);
  return (
    <div className={`logs${search.row === undefined ? "" : " with-side"}`}>
      <PageHead
        title="Logs"
        meta={
          summary
            ? `${countShort(summary.matched)} match of ${countShort(summary.matched + summary.outside)} kept`
            : undefined
        }
      />
      <QueryBar
        value={query}
        onChange={(q, replace) => change({ q: q || undefined, row: undefined }, replace)}
        placeholder="Filter: text, service:orders, severity>=warn, -scope:health, order.id:77"
        problem={problem ?? histogram.problem}
        note={summary ? `${plural(summary.matched, "row")} in ${duration(summary.took_ns)}` : undefined}
      />
      <LogHistogram data={histogram.data} />
      {live ? (
        <LiveRows key={`${space} ${query}`} {...list} />
      ) : (
        <FixedRows key={`${space} ${query} ${range.key}`} {...list} />
      )}
    </div>
  );
}

/** How many rows match in the range, and how many are outside the filter. */
function useSummary(space: string, query: string) {
  const { span } = useRange(5);
  return useQuery({
    queryKey: ["log-summary", space, query, Math.round(span.from_us / 5e6), span.live ? "now" : span.to_us],
    queryFn: ({ signal }) =>
      get<{ matched: number; outside: number; took_ns: number }>(
        "logs",
        { query, space, from_us: Math.round(span.from_us), to_us: span.live ? null : Math.round(span.to_us), limit: 1 },
        signal,
      ),
    placeholderData: keepPreviousData,
    retry: false,
  });
}

function useHistogram(space: string, query: string): { data: ChartData | null; problem: Problem | null } {
  const { span } = useRange(5);
  const marks = useMarks();
  const from = Math.round(span.from_us);
  const to = Math.round(span.to_us);
  const { data, error } = useQuery({
    queryKey: ["log-histogram", space, query, from, to],
    queryFn: ({ signal }) =>
      get<Histogram>("logs/histogram", { query, space, from_us: from, to_us: to, buckets: BUCKETS }, signal),
    placeholderData: keepPreviousData,
    retry: false,
  });
  const chart = useMemo<ChartData | null>(
    () =>
      data
        ? {
            span: { from_us: data.from_us, to_us: data.from_us + data.bucket_us * data.rest.length },
            from_us: data.from_us,
            bucket_us: data.bucket_us,
            series: [
              { name: "error", values: data.error, ink: "--bar-error", bars: true },
              { name: "warn", values: data.warn, ink: "--bar-warn", bars: true, stacked: true },
              { name: "rest", values: data.rest, ink: "--bar-info", bars: true, stacked: true },
            ],
            ...marks,
          }
        : null,
    [data, marks],
  );
  return { data: chart, problem: error ? problemFrom(error) : null };
}

const NOTHING: ChartData = { span: { from_us: 0, to_us: 1 }, from_us: 0, bucket_us: 1, series: [] };

function LogHistogram({ data }: { data: ChartData | null }) {
  return (
    <div className="log-histogram">
      <ChartView
        name="Rows by severity"
        label="Rows over time by severity"
        data={data ?? NOTHING}
        height={83}
        axis={axisNumber}
        whole
        left={44}
        empty={data ? "No rows in this range" : ""}
        value={() => null}
      />
    </div>
  );
}

interface ListProps {
  space: string;
  query: string;
  row: number | undefined;
  change: Change;
  onProblem: (problem: Problem | null) => void;
}

function LiveRows(props: ListProps) {
  const { space, query } = props;
  const [feed] = useRows<LogRow>({ channel: "logs", query, space, backfill: BACKFILL }, { capacity: CAPACITY });
  const ask = useMemo<LogQuery>(() => ({ query, space }), [query, space]);
  const oldest = useRef<{ before: number | null; busy: boolean }>({ before: Number.NaN, busy: false });
  const older = async () => {
    const state = oldest.current;
    const { first, next } = feed.get();
    if (state.busy || state.before === null || next === first) return;
    state.busy = true;
    try {
      feed.want(first, first + 1);
      const firstRow = feed.peek(first)?.row;
      const before = Number.isNaN(state.before) ? firstRow?.seq : state.before;
      if (before === undefined) return;
      const page = await logPage(ask, before);
      state.before = page.before;
      if (page.rows.length > 0) feed.prepend(page.rows);
    } catch (error) {
      props.onProblem(problemFrom(error));
    } finally {
      state.busy = false;
    }
  };
  return <List {...props} source={feed} older={() => void older()} live />;
}

function FixedRows(props: ListProps) {
  const { span } = useRange(5);
  const [past, setPast] = useState<PastRows | null>(null);
  const { space, query } = props;
  const from = Math.round(span.from_us);
  const to = Math.round(span.to_us);
  useEffect(() => {
    const made = new PastRows({ query, space, from_us: from, to_us: to });
    setPast(made);
    return () => made.destroy();
  }, [query, space, from, to]);
  useEffect(() => {
    paused.set("range", true);
    return () => paused.set("range", false);
  }, []);
  return past ? <List {...props} source={past} older={() => past.older()} live={false} /> : <Outlines />;
}

interface DrawnProps extends ListProps {
  source: RowSource<LogRow>;
  older: () => void;
  live: boolean;
}

function List({ source, older, live, row, change, query, onProblem }: DrawnProps) {
  const host = useRef<HTMLDivElement>(null);
  const rows = useRef<LogRows | null>(null);
  const [state, setState] = useState<RowsState>({ following: true, fresh: 0 });
  const [opened, setOpened] = useState<LogRow | null>(null);
  const { first, next, begun, problem } = useStore(source);
  const latest = useRef({ older, change });
  latest.current = { older, change };
  const open = (found: LogRow | null) => {
    setOpened(found);
    change({ row: found?.seq }, row !== undefined && found !== null);
  };
  const opener = useRef(open);
  opener.current = open;
  useEffect(() => {
    const made = new LogRows(host.current as HTMLDivElement, source, {
      onState: setState,
      onOpen: (found) => opener.current(found),
      onTop: () => latest.current.older(),
      onGap: (before) => latest.current.change({ row: before.seq }),
      onTime: (at) => cursor.set(at),
    });
    rows.current = made;
    const stop = paused.onResume(() => {
      opener.current(null);
      made.resume();
    });
    return () => {
      stop();
      made.destroy();
      paused.set("scroll", false);
      paused.set("open", false);
      cursor.set(null);
    };
  }, [source]);
  useOpened(row, source, opened, setOpened, query);
  useEffect(() => {
    rows.current?.select(row ?? null);
    paused.set("open", row !== undefined && live);
    if (row !== undefined) rows.current?.hold();
    else rows.current?.release();
  }, [row, live]);
  useEffect(() => paused.set("scroll", live && row === undefined && !state.following), [state.following, live, row]);
  useEffect(() => onProblem(problem), [problem, onProblem]);
  useFreshCount(live ? state.fresh : 0);
  const step = (by: number) => {
    const found = rows.current?.next(by);
    if (found) open(found);
  };
  useKeys([
    { keys: "j", does: "Next row", run: () => step(1) },
    { keys: "ArrowDown", does: "Next row", silent: true, run: () => step(1) },
    { keys: "k", does: "Previous row", run: () => step(-1) },
    { keys: "ArrowUp", does: "Previous row", silent: true, run: () => step(-1) },
    { keys: "Home", does: "Oldest loaded row", run: () => rows.current?.toOldest() },
    { keys: "End", does: "Live end", run: () => paused.resume() },
    { keys: "f", does: "Filter to the row's service", run: () => filterTo(opened, query, change, false) },
    { keys: "Shift F", does: "Filter out the row's service", run: () => filterTo(opened, query, change, true) },
  ]);
  return (
    <>
      <section className="region log-list" aria-label="Rows">
        <div className="log-head" aria-hidden="true">
          <span />
          <span>Time</span>
          <span>Service</span>
          <span>Level</span>
          <span>
            Body <i>oldest first</i>
          </span>
        </div>
        <div className="log-rows" ref={host}>
          {problem && !begunWithRows(first, next) ? <Fault problem={problem} /> : null}
          {!begun ? <Outlines rows={12} /> : null}
          {begun && !problem && first === next ? <Nothing query={query} change={change} /> : null}
          {state.following || !live ? null : (
            <button type="button" className="follow" onClick={() => paused.resume()}>
              <Icon name="down" size={12} />
              {state.fresh > 0 ? `${count(state.fresh)} new, follow` : "Follow"} <kbd>End</kbd>
            </button>
          )}
        </div>
      </section>
      {opened && row !== undefined ? (
        <LogPanel row={opened} query={query} change={change} close={() => open(null)} open={open} />
      ) : null}
    </>
  );
}

const begunWithRows = (first: number, next: number) => next > first;

function filterTo(row: LogRow | null, query: string, change: Change, negated: boolean): void {
  if (row) change({ q: withTerm(query, "service", row.service, negated) });
}

/** The row the URL names: from what is on screen, else from the server. */
function useOpened(
  seq: number | undefined,
  source: RowSource<LogRow>,
  opened: LogRow | null,
  setOpened: (row: LogRow | null) => void,
  query: string,
): void {
  const space = useSpace();
  useEffect(() => {
    if (seq === undefined) {
      setOpened(null);
      return;
    }
    if (opened?.seq === seq) return;
    const { first, next } = source.get();
    for (let at = next - 1; at >= first; at -= 1) {
      const row = source.peek(at)?.row;
      if (row?.seq === seq) {
        setOpened(row);
        return;
      }
    }
    const abort = new AbortController();
    get<{ rows: LogRow[] }>("logs", { query, space, before: seq + 1, limit: 1 }, abort.signal)
      .then(({ rows }) => {
        if (rows[0]?.seq === seq) setOpened(rows[0]);
      })
      .catch(() => {});
    return () => abort.abort();
  }, [seq, source, opened, setOpened, query, space]);
}

function Nothing({ query, change }: { query: string; change: Change }) {
  const { span } = useRange(5);
  const space = useSpace();
  const { data } = useSummary(space, query);
  if (tokens(query).length === 0 && (data?.outside ?? 0) === 0)
    return (
      <Empty title="No log records in this range">
        What services print is here, line by line, and what they send by OpenTelemetry; reactor's own records too. Point
        a service at the OTLP port, or let reactor run it.
      </Empty>
    );
  return (
    <NoneInRange
      query={query}
      where={span.live ? "in this range" : "in the chosen range"}
      outside={data ? `${plural(data.outside, "row")} outside the filter.` : null}
      onQuery={(q) => change({ q })}
    />
  );
}
