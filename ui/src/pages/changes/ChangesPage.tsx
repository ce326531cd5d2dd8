// Everything that happened, newest first: attachments, life cycle, refusals, changes of definitions.

import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Happening } from "../../api/types";
import { PageHead } from "../../frame/PageHead";
import { useHappenings } from "../../live/happenings";
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
      width: 112,
      narrow: 112,
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
          <span className="cut">{linked(h, nouns)}</span>
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

/** Happenings of the space in the page's range, newest first. */
function useChanges(): { changes: Happening[]; begun: boolean } {
  const space = useSpace();
  const { span } = useRange();
  const { rows, begun } = useHappenings(KEPT);
  const newest = rows[0]?.seq ?? 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the newest and their number stand for the rows
  const changes = useMemo(() => {
    const inRange = (h: Happening) => span.live || (h.at_us >= span.from_us && h.at_us <= span.to_us);
    return rows.filter((h) => (h.space === space || h.space === "") && inRange(h));
  }, [newest, rows.length, space, span]);
  return { changes, begun };
}

export function ChangesPage() {
  const search = useSearch({ from: "/changes" });
  const navigate = useNavigate({ from: "/changes" });
  const { changes, begun } = useChanges();
  const nouns = useNouns();
  const columns = useMemo(() => columnsFor(nouns), [nouns]);
  const q = search.q?.toLowerCase() ?? "";
  const shown = changes.filter(
    (h) =>
      (!search.attention || h.severity !== "info") &&
      `${h.line} ${h.name} ${h.service ?? ""}`.toLowerCase().includes(q),
  );
  const change = (next: Partial<typeof search>, replace = false) =>
    void navigate({ search: (s) => ({ ...s, ...next }), replace });
  return (
    <div className="page-rows">
      <PageHead title="Changes" meta={begun ? `${count(changes.length)} kept` : undefined} />
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
      {!begun ? (
        <Outlines />
      ) : changes.length === 0 ? (
        <Empty title="Nothing has happened yet">
          Services that attach or leave, restarts, refusals and changes of definitions are listed here, newest first.
        </Empty>
      ) : shown.length === 0 ? (
        <NoMatch where="this filter" outside={`${count(changes.length)} are outside it.`}>
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
