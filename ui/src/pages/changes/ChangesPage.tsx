// Everything that happened, newest first: attachments, life cycle, refusals, changes of definitions.

import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import type { Happening } from "../../api/types";
import { PageHead } from "../../frame/PageHead";
import { useRows } from "../../live/hooks";
import { useNouns } from "../../live/nouns";
import { count } from "../../parts/format";
import { glyphOf, linked, type Nouns } from "../../parts/Happening";
import { Glyph, ServiceName } from "../../parts/marks";
import { QueryBar } from "../../parts/QueryBar";
import { Empty, NoMatch, Outlines } from "../../parts/Region";
import { Segments } from "../../parts/Segments";
import { type Column, Table } from "../../parts/Table";
import { Time } from "../../parts/Time";
import { useRange, useSpace } from "../../time/useRange";

const KEPT = 2000;

function columnsFor(nouns: Nouns): Column<Happening>[] {
  return [
    {
      id: "time",
      head: "Time",
      width: 110,
      narrow: 100,
      sort: (h) => h.at_us,
      cell: (h) => (
        <span className="meta">
          <Time at={h.at_us} />
        </span>
      ),
    },
    {
      id: "what",
      head: "What happened",
      narrow: "rest",
      title: (h) => h.line,
      cell: (h) => (
        <span className="state">
          <Glyph kind={glyphOf(h)} />
          <span className="cut">{linked(h.line, nouns)}</span>
        </span>
      ),
    },
    {
      id: "service",
      head: "Service",
      width: 140,
      sort: (h) => h.service,
      cell: (h) => (h.service ? <ServiceName name={h.service} /> : null),
    },
    {
      id: "name",
      head: "Kind",
      width: 180,
      sort: (h) => h.name,
      cell: (h) => <span className="mono meta">{h.name}</span>,
    },
  ];
}

export function ChangesPage() {
  const space = useSpace();
  const { span } = useRange();
  const search = useSearch({ from: "/changes" });
  const navigate = useNavigate({ from: "/changes" });
  const [feed, view] = useRows<Happening>({ channel: "happenings", backfill: KEPT }, { capacity: KEPT });
  const [rows, setRows] = useState<Happening[]>([]);
  const nouns = useNouns();
  const columns = useMemo(() => columnsFor(nouns), [nouns]);
  useEffect(() => feed.follow(60), [feed]);
  useEffect(() => {
    feed.want(view.first, view.next);
    const all: Happening[] = [];
    for (let at = view.next - 1; at >= view.first; at -= 1) {
      const row = feed.peek(at)?.row;
      if (row) all.push(row);
    }
    setRows(all);
  }, [feed, view]);
  const inRange = useMemo(
    () =>
      rows.filter(
        (h) =>
          (h.space === space || h.space === "") && (span.live || (h.at_us >= span.from_us && h.at_us <= span.to_us)),
      ),
    [rows, space, span],
  );
  const q = search.q?.toLowerCase() ?? "";
  const shown = inRange.filter(
    (h) =>
      (!search.attention || h.severity !== "info") &&
      `${h.line} ${h.name} ${h.service ?? ""}`.toLowerCase().includes(q),
  );
  const change = (next: Partial<typeof search>, replace = false) =>
    void navigate({ search: (s) => ({ ...s, ...next }), replace });
  return (
    <div className="page-rows">
      <PageHead title="Changes" meta={view.begun ? `${count(inRange.length)} kept` : undefined} />
      <QueryBar
        plain
        value={search.q ?? ""}
        onChange={(text, replace) => change({ q: text || undefined }, replace)}
        placeholder="Filter changes"
        maxWidth={420}
      >
        <Segments
          label="Which"
          value={search.attention ? "attention" : "all"}
          options={[
            ["all", "All"],
            ["attention", "Warnings and errors"],
          ]}
          onChange={(v) => change({ attention: v === "attention" ? true : undefined }, true)}
        />
      </QueryBar>
      {!view.begun ? (
        <Outlines />
      ) : inRange.length === 0 ? (
        <Empty title="Nothing has happened yet">
          Services that attach or leave, restarts, refusals and changes of definitions are listed here, newest first.
        </Empty>
      ) : shown.length === 0 ? (
        <NoMatch where="this filter" outside={`${count(inRange.length)} are outside it.`}>
          <button type="button" className="link" onClick={() => change({ q: undefined, attention: undefined })}>
            Show all
          </button>
        </NoMatch>
      ) : (
        <Table
          label="Changes"
          rows={shown}
          columns={columns}
          keyOf={(h) => String(h.seq)}
          sort={search.sort}
          onSort={(sort) => change({ sort }, true)}
        />
      )}
    </div>
  );
}
