import { useNavigate } from "@tanstack/react-router";
import type { Exchange } from "../../api/types";
import { useList } from "../../live/useList";
import { MiddleCut } from "../../parts/MiddleCut";
import { Num } from "../../parts/Num";
import { Empty } from "../../parts/Region";
import type { Column } from "../../parts/Table";
import { LongTable } from "./LongTable";
import { exchangeName, exchangePath } from "./links";
import type { Change } from "./QueuesPage";
import type { QueuesSearch } from "./search";

const quiet = (v: number) => (v === 0 ? <span className="meta">0</span> : <Num value={v} as="rateCell" />);

const COLUMNS: Column<Exchange>[] = [
  {
    id: "name",
    head: "Exchange",
    narrow: "rest",
    sort: (e) => e.name,
    cell: (e) => <MiddleCut text={exchangeName(e.name)} className={e.name ? "" : "meta"} />,
  },
  { id: "kind", head: "Type", width: 120, narrow: 76, sort: (e) => e.kind, cell: (e) => e.kind },
  {
    id: "features",
    head: "Features",
    width: 220,
    cell: (e) => (
      <span className="meta">
        {[e.durable ? "durable" : "transient", e.auto_delete ? "auto-delete" : "", e.internal ? "internal" : ""]
          .filter(Boolean)
          .join(", ")}
      </span>
    ),
  },
  {
    id: "bindings",
    head: "Bindings",
    num: true,
    width: 90,
    sort: (e) => e.bindings,
    cell: (e) => (e.bindings === 0 ? <span className="meta">0</span> : <Num value={e.bindings} />),
  },
  { id: "in", head: "In, /s", num: true, width: 90, narrow: 64, sort: (e) => e.in_rate, cell: (e) => quiet(e.in_rate) },
  { id: "out", head: "Out, /s", num: true, width: 90, sort: (e) => e.out_rate, cell: (e) => quiet(e.out_rate) },
];

const keyOf = (e: Exchange) => e.name;

export function ExchangesTable({ space, search, change }: { space: string; search: QueuesSearch; change: Change }) {
  const navigate = useNavigate();
  const list = useList<Exchange>("exchanges/page", { space, q: search.q, sort: search.sort }, keyOf);
  return (
    <LongTable
      what="exchange"
      list={list}
      columns={COLUMNS}
      keyOf={keyOf}
      search={search}
      change={change}
      onOpen={(e) =>
        void navigate({
          to: "/queues/-/exchanges/$exchangeSpace/$exchangeName",
          params: { exchangeSpace: e.space, exchangeName: exchangePath(e.name) },
        })
      }
      empty={<Empty title="No exchanges">The built-in ones belong to every space; this space is not there.</Empty>}
    />
  );
}
