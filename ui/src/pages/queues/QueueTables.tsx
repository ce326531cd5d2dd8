// Who consumes a queue, what is bound to it, and what it is set to.

import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Binding, Fates, QueueDetail } from "../../api/types";
import { Flow, type FlowEnd } from "../../parts/Flow";
import { count, plural } from "../../parts/format";
import { MiddleCut } from "../../parts/MiddleCut";
import { ServiceName } from "../../parts/marks";
import { Empty } from "../../parts/Region";
import { Segments } from "../../parts/Segments";
import { Facts } from "../../parts/SidePanel";
import { Table } from "../../parts/Table";
import { CONSUMERS_OF_QUEUE, consumerKey } from "./ConsumersTable";
import { ConnectionName, ExchangeName } from "./links";
import { argumentWords, durabilityWords, valueText } from "./queue";
import type { QueueSearch } from "./search";

interface QueueTablesProps {
  queue: QueueDetail;
  search: QueueSearch;
  change: (next: Partial<QueueSearch>, replace?: boolean) => void;
}

export function QueueTables({ queue, search, change }: QueueTablesProps) {
  const tab = search.tab ?? "consumers";
  return (
    <section className="queue-tables line-top" aria-label="Consumers, bindings and settings">
      <div className="region-head">
        <Segments
          label="What"
          value={tab}
          options={[
            ["consumers", `Consumers ${count(queue.consumers)}`],
            ["bindings", `Bindings ${count(queue.bindings.length)}`],
            ["settings", "Settings"],
          ]}
          onChange={(v) => change({ tab: v === "consumers" ? undefined : v }, true)}
        />
      </div>
      {tab === "consumers" ? <Consumers queue={queue} /> : null}
      {tab === "bindings" ? <Bindings queue={queue} /> : null}
      {tab === "settings" ? <Settings queue={queue} /> : null}
    </section>
  );
}

function Consumers({ queue }: { queue: QueueDetail }) {
  if (queue.consumer_list.length === 0)
    return <Empty title="No consumer">What is published waits here until one connects.</Empty>;
  return <Table label="Consumers" rows={queue.consumer_list} columns={CONSUMERS_OF_QUEUE} keyOf={consumerKey} grows />;
}

/** A binding's key, or what it asks of headers. */
export const bindingKey = (b: Pick<Binding, "routing_key" | "arguments">): string => {
  const asked = Object.entries(b.arguments).map(([k, v]) => `${k}=${valueText(v)}`);
  return asked.length > 0
    ? `${b.routing_key ? `${b.routing_key} ` : ""}${asked.join(" ")}`
    : b.routing_key || "(empty)";
};

function Bindings({ queue }: { queue: QueueDetail }) {
  const left: FlowEnd[] = [
    { id: "default", node: <ExchangeName space={queue.space} name="" />, label: queue.name, dashed: true },
    ...queue.bindings.map((b) => ({
      id: `${b.source} ${bindingKey(b)}`,
      node: <ExchangeName space={queue.space} name={b.source} />,
      label: bindingKey(b),
    })),
  ];
  const right: FlowEnd[] = queue.consumer_list.map((c) => ({
    id: consumerKey(c),
    node:
      c.service && c.service !== c.connection ? (
        <ServiceName name={c.service} />
      ) : (
        <ConnectionName id={c.connection_id} name={c.connection} />
      ),
    label: c.no_ack ? "auto-ack" : c.prefetch === 0 ? "no limit" : `prefetch ${count(c.prefetch)}`,
  }));
  return (
    <Flow
      label={`What leads to ${queue.name}, and who takes from it`}
      middle={<MiddleCut text={queue.name} className="strong" />}
      left={left}
      right={right}
      noRight="No consumer"
    />
  );
}

const FATES: readonly (readonly [keyof Fates, string])[] = [
  ["requeued", "returned"],
  ["rejected", "rejected"],
  ["expired", "expired"],
  ["dead_lettered", "dead-lettered"],
  ["dropped", "dropped as the oldest of a full queue"],
  ["refused", "refused because it was full"],
  ["purged", "purged"],
];

/** What rules the queue, and what of it its policies say. */
function policyRows(queue: QueueDetail): (readonly [string, ReactNode])[] {
  const names = [queue.policy, queue.operator_policy && `${queue.operator_policy} (operator's)`].filter(Boolean);
  const sets = Object.entries(queue.policy_sets);
  return [
    [
      "Policy",
      names.length === 0 ? (
        <span key="p" className="meta">
          none matches
        </span>
      ) : (
        <Link key="p" to="/queues" search={{ tab: "policies", ...(queue.policy ? { policy: queue.policy } : {}) }}>
          {names.join(", ")}
        </Link>
      ),
    ],
    ...sets.map(([name, value]) => {
      const argument = `x-${name}`;
      const words = argumentWords(argument, value, { arguments: { ...queue.arguments, [argument]: value } });
      return [
        name,
        <span key={name}>
          <span className="mono">{valueText(value)}</span>
          <span className="meta"> by policy{words ? `: ${words}` : ""}</span>
        </span>,
      ] as const;
    }),
  ];
}

function Settings({ queue }: { queue: QueueDetail }) {
  const kind = String(queue.arguments["x-queue-type"] ?? "classic");
  const traits = [
    queue.durable ? "durable" : "transient",
    queue.exclusive ? "exclusive to one connection" : "",
    queue.auto_delete ? "goes with its last consumer" : "",
  ].filter(Boolean);
  const entries = Object.entries(queue.arguments).filter(([name]) => name !== "x-queue-type");
  return (
    <div className="queue-settings">
      <Facts
        plain
        rows={[
          ["Type", `${kind}, ${traits.join(", ")}`],
          [
            "Messages",
            <span key="m" className={queue.not_on_disk ? "warn" : undefined}>
              {durabilityWords(queue)}
            </span>,
          ],
          ...entries.map(([name, value]) => {
            const words = argumentWords(name, value, queue);
            return [
              name,
              <span key={name}>
                <span className="mono">{valueText(value)}</span>
                {words ? <span className="meta">: {words}</span> : null}
              </span>,
            ] as const;
          }),
          ...policyRows(queue),
          [
            "Holds",
            `${plural(queue.ready, "ready message")}, ${count(queue.unacked)} unacked${
              queue.kept > 0 ? `, ${plural(queue.kept, "dead letter")} that nobody took yet` : ""
            }`,
          ],
          [
            "Since declared",
            FATES.filter(([name]) => queue.fates[name] > 0)
              .map(([name, words]) => `${count(queue.fates[name])} ${words}`)
              .join(", ") || (
              <span key="f" className="meta">
                nothing returned, rejected, expired or dropped
              </span>
            ),
          ],
        ]}
      />
    </div>
  );
}
