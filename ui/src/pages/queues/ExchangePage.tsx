// One exchange: its rates, what leads to it and from it, and where a message would go.

import { keepPreviousData, useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { get, problemFrom, segment, send } from "../../api/client";
import type { Binding, ExchangeDetail } from "../../api/types";
import { PageHead } from "../../frame/PageHead";
import { usePaused } from "../../live/hooks";
import { Confirm } from "../../parts/Confirm";
import { Flow, type FlowEnd } from "../../parts/Flow";
import { TextField } from "../../parts/Form";
import { count, plural } from "../../parts/format";
import { Pill } from "../../parts/marks";
import { Num } from "../../parts/Num";
import { Empty, Fault, Outlines, Region } from "../../parts/Region";
import { Facts } from "../../parts/SidePanel";
import { type Column, Table } from "../../parts/Table";
import { ExchangeName, exchangeName, QueueName } from "./links";
import { readHeaders } from "./message";
import { PublishDialog } from "./PublishDialog";
import { bindingKey } from "./QueueTables";
import { valueText } from "./queue";
import type { ExchangeSearch } from "./search";
import { useWouldRoute, WouldRoute } from "./WouldRoute";
import "./queues.css";
import { MiddleCut } from "../../parts/MiddleCut";

export function ExchangePage() {
  const { exchangeSpace: space, exchangeName: alias } = useParams({
    from: "/queues/-/exchanges/$exchangeSpace/$exchangeName",
  });
  const held = usePaused().has("key");
  const detail = useQuery({
    queryKey: ["exchange", space, alias],
    queryFn: ({ signal }) => get<ExchangeDetail>(`exchanges/${segment(space)}/${segment(alias)}`, {}, signal),
    refetchInterval: held ? false : 1000,
    placeholderData: keepPreviousData,
  });
  const head = (
    <>
      <Link to="/queues" search={{ tab: "exchanges" }} className="dim">
        Exchanges
      </Link>
      <span className="sep">/</span>
      <MiddleCut text={exchangeName(detail.data?.name ?? alias)} />
    </>
  );
  if (!detail.data || detail.error) {
    return (
      <>
        <PageHead title={head} name={alias} />
        {detail.error ? (
          <Fault problem={problemFrom(detail.error)} retry={() => void detail.refetch()} />
        ) : (
          <Outlines />
        )}
      </>
    );
  }
  return <Loaded key={`${space} ${alias}`} exchange={detail.data} head={head} />;
}

/** Those that belong to every space cannot be deleted. */
const isBuiltIn = (name: string) => name === "" || name.startsWith("amq.") || name.startsWith("reactor.");

function Loaded({ exchange, head }: { exchange: ExchangeDetail; head: ReactNode }) {
  const search = useSearch({ from: "/queues/-/exchanges/$exchangeSpace/$exchangeName" });
  const navigate = useNavigate({ from: "/queues/-/exchanges/$exchangeSpace/$exchangeName" });
  const change = (next: Partial<ExchangeSearch>, replace = false) =>
    void navigate({ search: (s) => ({ ...s, ...next }), replace });
  const [lines, setLines] = useState("");
  const { headers, wrong } = readHeaders(lines);
  const key = search.key ?? "";
  const tried = search.key !== undefined || lines !== "";
  const { data: would } = useWouldRoute(exchange.space, exchange.name, key, headers);
  const reached = new Set(tried ? (would?.queues ?? []) : []);
  return (
    <div className="exchange-page">
      <PageHead
        title={head}
        name={exchangeName(exchange.name)}
        meta={<Kinds exchange={exchange} />}
        actions={
          <>
            <button
              type="button"
              className="btn"
              disabled={exchange.internal}
              onClick={() => change({ act: "publish" })}
            >
              Publish
            </button>
            {isBuiltIn(exchange.name) ? null : (
              <button type="button" className="btn danger wide-only" onClick={() => change({ act: "delete" })}>
                Delete
              </button>
            )}
          </>
        }
      />
      <Totals exchange={exchange} />
      <Region title="Where a message would go" className="line-top region-grows">
        <div className="try-route">
          <TextField
            label="Routing key"
            mono
            value={key}
            onChange={(text) => change({ key: text || undefined }, true)}
            placeholder={exchange.kind === "topic" ? "order.placed" : "key"}
          />
          <TextField label="Headers" mono value={lines} onChange={setLines} wrong={wrong} placeholder="tenant: blue" />
          <WouldRoute space={exchange.space} exchange={exchange.name} routingKey={key} headers={headers} />
        </div>
      </Region>
      <Region
        title="Bindings"
        count={exchange.name === "" ? "implied" : count(exchange.leads_to.length + exchange.fed_by.length)}
        className="line-top region-grows"
      >
        <Bindings exchange={exchange} reached={reached} />
      </Region>
      {Object.keys(exchange.arguments).length > 0 ? (
        <Region title="Arguments" className="line-top region-grows">
          <Facts rows={Object.entries(exchange.arguments).map(([k, v]) => [k, valueText(v)] as const)} />
        </Region>
      ) : null}
      {search.act === "publish" ? (
        <PublishDialog
          space={exchange.space}
          exchange={exchange.name}
          routingKey={key}
          close={() => change({ act: undefined }, true)}
        />
      ) : null}
      {search.act === "delete" ? (
        <DeleteExchange exchange={exchange} close={() => change({ act: undefined }, true)} />
      ) : null}
    </div>
  );
}

function Kinds({ exchange }: { exchange: ExchangeDetail }) {
  const kinds = [
    exchange.kind,
    exchange.durable ? "durable" : "transient",
    exchange.auto_delete ? "auto-delete" : "",
    exchange.internal ? "internal" : "",
  ].filter(Boolean);
  return (
    <span className="flex pills">
      {kinds.map((kind) => (
        <Pill key={kind}>{kind}</Pill>
      ))}
    </span>
  );
}

function Totals({ exchange }: { exchange: ExchangeDetail }) {
  const copies = exchange.in_rate > 0.05 ? exchange.out_rate / exchange.in_rate : null;
  const items: [string, ReactNode][] = [
    ["In", <Num key="i" value={exchange.in_rate} as="rate" />],
    ["Into queues", <Num key="o" value={exchange.out_rate} as="rate" />],
    ["Copies of each", <Num key="c" value={copies} as="rateCell" why="Nothing is published now" />],
    [exchange.name === "" ? "Queues" : "Bindings", <Num key="b" value={exchange.bindings} />],
  ];
  return (
    <dl className="totals">
      {items.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

const destination = (space: string, b: Binding, max?: number) =>
  b.destination_type === "queue" ? (
    <QueueName space={space} name={b.destination} {...(max ? { max } : {})} />
  ) : (
    <ExchangeName space={space} name={b.destination} {...(max ? { max } : {})} />
  );
const destinationKey = (b: Binding) => `${b.destination_type} ${b.destination} ${bindingKey(b)}`;

/** More than these are also listed. */
const DRAWN = 10;

function Bindings({ exchange, reached }: { exchange: ExchangeDetail; reached: ReadonlySet<string> }) {
  if (exchange.name === "") {
    return (
      <Empty title="Reaches every queue by its name">
        The default exchange has an implied binding to each of the {plural(exchange.bindings, "queue")} of the space,
        with the queue's name as its key.
      </Empty>
    );
  }
  if (exchange.leads_to.length + exchange.fed_by.length === 0) {
    return (
      <Empty title="Nothing is bound">
        Messages published here are dropped, or returned when they are mandatory. Programs bind their queues with{" "}
        <code>queue.bind</code>, and exchanges to one another with <code>exchange.bind</code>.
      </Empty>
    );
  }
  const left: FlowEnd[] = exchange.fed_by.map((b) => ({
    id: `${b.source} ${bindingKey(b)}`,
    node: <ExchangeName space={exchange.space} name={b.source} />,
    label: bindingKey(b),
  }));
  const right: FlowEnd[] = exchange.leads_to.map((b) => ({
    id: destinationKey(b),
    node: destination(exchange.space, b, 30),
    label: bindingKey(b),
    // Whether it went on through another exchange is not known here.
    on: b.destination_type === "queue" ? reached.has(b.destination) : undefined,
  }));
  right.sort((a, b) => Number(b.on ?? false) - Number(a.on ?? false));
  return (
    <>
      <Flow
        label={`What leads to ${exchange.name}, and what it leads to`}
        middle={<MiddleCut text={exchange.name} className="strong" />}
        left={left}
        right={right}
        noLeft="Publishers only"
        noRight="Leads nowhere"
      />
      {exchange.leads_to.length > DRAWN ? (
        <Table
          label="Bindings"
          rows={exchange.leads_to}
          columns={columnsOf(exchange.space)}
          keyOf={destinationKey}
          grows
        />
      ) : null}
    </>
  );
}

function columnsOf(space: string): Column<Binding>[] {
  return [
    { id: "to", head: "Leads to", narrow: "rest", cell: (b) => destination(space, b) },
    { id: "kind", head: "Kind", width: 100, cell: (b) => <span className="meta">{b.destination_type}</span> },
    {
      id: "key",
      head: "Key",
      width: 360,
      narrow: 140,
      title: bindingKey,
      cell: (b) => <MiddleCut text={bindingKey(b)} />,
    },
  ];
}

function DeleteExchange({ exchange, close }: { exchange: ExchangeDetail; close: () => void }) {
  const navigate = useNavigate();
  const remove = useMutation({
    mutationFn: () => send("DELETE", `exchanges/${segment(exchange.space)}/${segment(exchange.name)}`),
    onSuccess: () => void navigate({ to: "/queues", search: { tab: "exchanges" } }),
  });
  return (
    <Confirm
      title={`Delete ${exchange.name}`}
      keep="Keep it"
      act={`Delete the exchange and ${plural(exchange.bindings, "binding")}`}
      danger
      disabled={remove.isPending}
      error={remove.error}
      run={() => remove.mutate()}
      close={close}
    >
      <p>
        Who publishes to <span className="mono">{exchange.name}</span> afterwards is refused with 404; the queues behind
        it stay.
      </p>
    </Confirm>
  );
}
