// The broker of a space: queues, exchanges, connections, channels and consumers, each a table.

import { useNavigate, useSearch } from "@tanstack/react-router";
import { PageHead } from "../../frame/PageHead";
import { useOverview } from "../../live/hooks";
import { countShort, plural } from "../../parts/format";
import { Pill } from "../../parts/marks";
import { QueryField } from "../../parts/QueryBar";
import { Segments } from "../../parts/Segments";
import { useSpace } from "../../time/useRange";
import { ChannelsTable } from "./ChannelsTable";
import { ConnectionsTable } from "./ConnectionsTable";
import { ConsumersTable } from "./ConsumersTable";
import { DeclareDialog } from "./DeclareDialog";
import { ExchangesTable } from "./ExchangesTable";
import { JourneysTable } from "./JourneysTable";
import { PoliciesTable } from "./PoliciesTable";
import { QueuesTable } from "./QueuesTable";
import type { QueuesSearch } from "./search";
import { useQueueSums } from "./useQueueSums";
import "./queues.css";

export type Change = (next: Partial<QueuesSearch>, replace?: boolean) => void;

const TABS = [
  ["queues", "Queues"],
  ["exchanges", "Exchanges"],
  ["connections", "Connections"],
  ["channels", "Channels"],
  ["consumers", "Consumers"],
  ["messages", "Messages"],
  ["policies", "Policies"],
] as const;
/** What can be made on a tab. */
const MADE = { queues: "queue", exchanges: "exchange", policies: "policy" } as const;

export function QueuesPage() {
  const space = useSpace();
  const search = useSearch({ from: "/queues" });
  const navigate = useNavigate({ from: "/queues" });
  const change: Change = (next, replace = false) => void navigate({ search: (s) => ({ ...s, ...next }), replace });
  const { message_storage } = useOverview();
  const sums = useQueueSums(space);
  const tab = search.tab ?? "queues";
  const make = tab in MADE ? MADE[tab as keyof typeof MADE] : null;
  const own = { space, search, change };
  return (
    <div className="queues">
      <PageHead
        title="Queues"
        meta={
          <>
            {sums ? `${plural(sums.total, "queue")}, ${countShort(sums.ready)} ready` : ""}{" "}
            {message_storage === "memory" ? (
              <span title="Durable queues and persistent messages are accepted and kept in memory: they do not survive a restart">
                <Pill tone="warn">not on disk</Pill>
              </span>
            ) : null}
          </>
        }
        actions={
          make ? (
            <button type="button" className="btn wide-only" onClick={() => change({ make })}>
              New {make}
            </button>
          ) : null
        }
      />
      <div className="query tabbed">
        <Segments
          label="What"
          value={tab}
          options={TABS}
          onChange={(v) =>
            change({
              tab: v === "queues" ? undefined : v,
              sort: undefined,
              q: undefined,
              cols: undefined,
              message: undefined,
            })
          }
        />
        <QueryField
          plain
          value={search.q ?? ""}
          onChange={(text, replace) => change({ q: text || undefined }, replace)}
          placeholder={tab === "messages" ? "Find by id, header, key or body" : `Filter ${tab}`}
          maxWidth={420}
        />
      </div>
      {tab === "queues" ? <QueuesTable {...own} /> : null}
      {tab === "exchanges" ? <ExchangesTable {...own} /> : null}
      {tab === "connections" ? <ConnectionsTable {...own} /> : null}
      {tab === "channels" ? <ChannelsTable {...own} /> : null}
      {tab === "consumers" ? <ConsumersTable {...own} /> : null}
      {tab === "messages" ? <JourneysTable {...own} /> : null}
      {tab === "policies" ? <PoliciesTable {...own} /> : null}
      {search.make === "queue" || search.make === "exchange" ? (
        <DeclareDialog what={search.make} space={space} close={() => change({ make: undefined }, true)} />
      ) : null}
    </div>
  );
}
