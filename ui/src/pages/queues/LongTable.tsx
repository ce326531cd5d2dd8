// A long list of the broker as a table: its rows come from the server as they are looked at.

import type { ReactNode } from "react";
import type { Page } from "../../live/useList";
import type { UsedStretch } from "../../live/useStretch";
import { plural } from "../../parts/format";
import { Fault, NoMatch, Outlines } from "../../parts/Region";
import { type Column, Table } from "../../parts/Table";
import type { Change } from "./QueuesPage";
import type { QueuesSearch } from "./search";

interface LongTableProps<T> {
  /** One row, in the singular. */
  what: string;
  list: UsedStretch<T, Page<T>>;
  columns: readonly Column<T>[];
  keyOf: (row: T) => string;
  search: QueuesSearch;
  change: Change;
  onOpen?: (row: T) => void;
  empty: ReactNode;
}

export function LongTable<T>({ what, list, columns, keyOf, search, change, onOpen, empty }: LongTableProps<T>) {
  const { answer, problem, refetch, rows, stretch } = list;
  const many = `${what}s`;
  if (problem && !answer) return <Fault problem={problem} retry={refetch} />;
  if (!answer) return <Outlines />;
  if (answer.all === 0) return empty;
  if (answer.total === 0) {
    return (
      <NoMatch where="this filter" outside={`${plural(answer.all, what)} outside it.`}>
        <button type="button" className="link" onClick={() => change({ q: undefined })}>
          Show all {many}
        </button>
      </NoMatch>
    );
  }
  return (
    <Table
      label={`${many.charAt(0).toUpperCase()}${many.slice(1)}`}
      rows={rows}
      columns={columns}
      keyOf={keyOf}
      stretch={stretch}
      sort={search.sort}
      onSort={(sort) => change({ sort }, true)}
      cols={search.cols}
      onCols={(cols) => change({ cols }, true)}
      {...(onOpen ? { onOpen } : {})}
    />
  );
}
