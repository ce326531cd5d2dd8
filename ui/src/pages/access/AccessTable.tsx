// A short list of the access page: filtered here, opened by pressing a row.

import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { problemFrom } from "../../api/client";
import { plural } from "../../parts/format";
import { Fault, NoMatch, Outlines } from "../../parts/Region";
import { type Column, Table } from "../../parts/Table";
import type { Change } from "./AccessPage";
import type { AccessSearch } from "./search";

interface AccessTableProps<T> {
  what: string;
  query: UseQueryResult<T[]>;
  columns: readonly Column<T>[];
  keyOf: (row: T) => string;
  texts: (row: T) => readonly string[];
  search: AccessSearch;
  change: Change;
  empty: ReactNode;
}

export function AccessTable<T>({ what, query, columns, keyOf, texts, search, change, empty }: AccessTableProps<T>) {
  const { data, error, refetch } = query;
  if (error) return <Fault problem={problemFrom(error)} retry={() => void refetch()} />;
  if (!data) return <Outlines />;
  if (data.length === 0) return empty;
  const q = search.q?.toLowerCase() ?? "";
  const rows = data.filter((row) => texts(row).some((text) => text.toLowerCase().includes(q)));
  if (rows.length === 0) return <NoMatch where="this filter" outside={`${plural(data.length, what)} outside it.`} />;
  return (
    <Table
      label={`${what.charAt(0).toUpperCase()}${what.slice(1)}s`}
      rows={rows}
      columns={columns}
      keyOf={keyOf}
      sort={search.sort}
      onSort={(sort) => change({ sort }, true)}
      selected={search.open}
      onOpen={(row) => change({ open: keyOf(row) })}
    />
  );
}
