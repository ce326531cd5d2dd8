// A list short enough to come whole: filtered here, opened by pressing a row.

import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { problemFrom } from "../api/client";
import { plural } from "./format";
import { Fault, NoMatch, Outlines } from "./Region";
import { type Column, Table } from "./Table";

/** What the address says of the list. */
export interface ListState {
  q: string | undefined;
  sort: string | undefined;
  onSort: (sort: string | undefined) => void;
  /** Key of the opened row. */
  open: string | undefined;
  onOpen: (key: string) => void;
}

interface ShortListProps<T> {
  /** One row, in the singular, and its plural if that is not with an s. */
  what: string;
  many?: string;
  query: UseQueryResult<T[]>;
  columns: readonly Column<T>[];
  keyOf: (row: T) => string;
  /** What the filter looks in. */
  texts: (row: T) => readonly string[];
  state: ListState;
  empty: ReactNode;
}

export function ShortList<T>({
  what,
  many = `${what}s`,
  query,
  columns,
  keyOf,
  texts,
  state,
  empty,
}: ShortListProps<T>) {
  const { data, error, refetch } = query;
  if (error) return <Fault problem={problemFrom(error)} retry={() => void refetch()} />;
  if (!data) return <Outlines />;
  if (data.length === 0) return empty;
  const q = state.q?.toLowerCase() ?? "";
  const rows = data.filter((row) => texts(row).some((text) => text.toLowerCase().includes(q)));
  if (rows.length === 0)
    return <NoMatch where="this filter" outside={`${plural(data.length, what, many)} outside it.`} />;
  return (
    <Table
      label={`${many.charAt(0).toUpperCase()}${many.slice(1)}`}
      rows={rows}
      columns={columns}
      keyOf={keyOf}
      sort={state.sort}
      onSort={state.onSort}
      selected={state.open}
      onOpen={(row) => state.onOpen(keyOf(row))}
    />
  );
}
