// Queues, exchanges and connections of the space, each a table.

import { useNavigate, useSearch } from "@tanstack/react-router";
import { PageHead } from "../../frame/PageHead";
import { useConnections, useExchanges, useOverview, useQueues } from "../../live/hooks";
import { countShort, plural } from "../../parts/format";
import { Pill } from "../../parts/marks";
import { QueryField } from "../../parts/QueryBar";
import { Segments } from "../../parts/Segments";
import { useSpace } from "../../time/useRange";
import { ConnectionsTable } from "./ConnectionsTable";
import { ExchangesTable } from "./ExchangesTable";
import { QueuesTable } from "./QueuesTable";
import type { QueuesSearch } from "./search";
import "./queues.css";

export type Change = (next: Partial<QueuesSearch>, replace?: boolean) => void;

export function QueuesPage() {
  const space = useSpace();
  const search = useSearch({ from: "/queues" });
  const navigate = useNavigate({ from: "/queues" });
  const change: Change = (next, replace = false) => void navigate({ search: (s) => ({ ...s, ...next }), replace });
  const queues = useQueues(space);
  const exchanges = useExchanges(space);
  const connections = useConnections(space);
  const { message_storage } = useOverview();
  const ready = queues.list.reduce((n, q) => n + q.ready, 0);
  const tab = search.tab ?? "queues";
  const q = search.q?.toLowerCase() ?? "";
  return (
    <div className="queues">
      <PageHead
        title="Queues"
        meta={
          <>
            {queues.ready ? `${plural(queues.list.length, "queue")}, ${countShort(ready)} ready` : ""}{" "}
            {message_storage === "memory" ? (
              <span title="Durable queues and persistent messages are accepted and kept in memory: they do not survive a restart">
                <Pill tone="warn">not on disk</Pill>
              </span>
            ) : null}
          </>
        }
      />
      <div className="query">
        <Segments
          label="What"
          value={tab}
          options={[
            ["queues", `Queues ${queues.list.length}`],
            ["exchanges", `Exchanges ${exchanges.list.length}`],
            ["connections", `Connections ${connections.list.length}`],
          ]}
          onChange={(v) => change({ tab: v === "queues" ? undefined : v, sort: undefined, q: undefined })}
        />
        <QueryField
          plain
          value={search.q ?? ""}
          onChange={(text, replace) => change({ q: text || undefined }, replace)}
          placeholder={`Filter ${tab}`}
          maxWidth={420}
        />
      </div>
      {tab === "queues" ? <QueuesTable rows={queues} q={q} search={search} change={change} /> : null}
      {tab === "exchanges" ? (
        <ExchangesTable rows={exchanges} space={space} q={q} search={search} change={change} />
      ) : null}
      {tab === "connections" ? <ConnectionsTable rows={connections} q={q} search={search} change={change} /> : null}
    </div>
  );
}
