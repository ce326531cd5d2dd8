// Policies of the space: settings for every queue and exchange whose name matches, changed for all of them at once.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { get, problemFrom, segment, send } from "../../api/client";
import type { PolicyRow } from "../../api/types";
import { Check, Choice, TextField } from "../../parts/Form";
import { plural } from "../../parts/format";
import { Pill } from "../../parts/marks";
import { Num } from "../../parts/Num";
import { Empty, Fault, NoMatch, Outlines } from "../../parts/Region";
import { type Column, Table } from "../../parts/Table";
import { pathWith } from "./action";
import { readHeaders } from "./message";
import { Confirm } from "./QueueDialogs";
import type { Change } from "./QueuesPage";
import { valueText } from "./queue";
import type { QueuesSearch } from "./search";

const policyKey = (p: PolicyRow) => `${p.operator ? "operator " : ""}${p.name}`;
const definitionText = (p: PolicyRow) =>
  Object.entries(p.definition)
    .map(([k, v]) => `${k}: ${valueText(v)}`)
    .join(", ");

const COLUMNS: Column<PolicyRow>[] = [
  {
    id: "name",
    head: "Policy",
    width: 220,
    narrow: 120,
    sort: (p) => p.name,
    cell: (p) => (
      <>
        <span className="mono">{p.name}</span> {p.operator ? <Pill>operator</Pill> : null}
      </>
    ),
  },
  {
    id: "pattern",
    head: "Pattern",
    width: 200,
    narrow: "rest",
    sort: (p) => p.pattern,
    title: (p) => p.pattern,
    cell: (p) => <span className="mono">{p.pattern}</span>,
  },
  { id: "to", head: "Applies to", width: 130, sort: (p) => p.apply_to, cell: (p) => p.apply_to.replace("_", " ") },
  {
    id: "definition",
    head: "Sets",
    title: definitionText,
    cell: (p) => <span className="mono dim">{definitionText(p)}</span>,
  },
  { id: "priority", head: "Priority", num: true, width: 80, sort: (p) => p.priority, cell: (p) => p.priority },
  {
    id: "queues",
    head: "Queues",
    num: true,
    width: 80,
    narrow: 76,
    sort: (p) => p.queues,
    cell: (p) => (p.queues === 0 ? <span className="meta">0</span> : <Num value={p.queues} />),
  },
  {
    id: "exchanges",
    head: "Exchanges",
    num: true,
    width: 90,
    sort: (p) => p.exchanges,
    cell: (p) => (p.exchanges === 0 ? <span className="meta">0</span> : <Num value={p.exchanges} />),
  },
];

export function PoliciesTable({ space, search, change }: { space: string; search: QueuesSearch; change: Change }) {
  const { data, error, refetch } = useQuery({
    queryKey: ["policies", space],
    queryFn: ({ signal }) => get<PolicyRow[]>("policies", { space }, signal),
    refetchInterval: 3000,
  });
  const q = search.q?.toLowerCase() ?? "";
  const rows = (data ?? []).filter((p) =>
    [p.name, p.pattern, definitionText(p)].some((t) => t.toLowerCase().includes(q)),
  );
  const opened = data?.find((p) => policyKey(p) === search.policy) ?? null;
  const close = () => change({ make: undefined, policy: undefined }, true);
  return (
    <>
      {error ? (
        <Fault problem={problemFrom(error)} retry={() => void refetch()} />
      ) : !data ? (
        <Outlines />
      ) : data.length === 0 ? (
        <Empty title="No policies">
          A policy sets things for every queue and exchange whose name matches a pattern: how long messages live, how
          many a queue holds, where dead letters go. Changing it changes all of them at once, while they run.{" "}
          <button type="button" className="link" onClick={() => change({ make: "policy" })}>
            Make one
          </button>
        </Empty>
      ) : rows.length === 0 ? (
        <NoMatch where="this filter" outside={`${plural(data.length, "policy", "policies")} outside it.`} />
      ) : (
        <Table
          label="Policies"
          rows={rows}
          columns={COLUMNS}
          keyOf={policyKey}
          sort={search.sort}
          onSort={(sort) => change({ sort }, true)}
          selected={search.policy}
          onOpen={(p) => change({ policy: policyKey(p) })}
        />
      )}
      {search.make === "policy" ? <PolicyDialog space={space} known={null} close={close} /> : null}
      {opened ? <PolicyDialog key={policyKey(opened)} space={space} known={opened} close={close} /> : null}
    </>
  );
}

const TO = [
  ["queues", "Queues"],
  ["exchanges", "Exchanges"],
  ["all", "Both"],
] as const;

function PolicyDialog({ space, known, close }: { space: string; known: PolicyRow | null; close: () => void }) {
  const queries = useQueryClient();
  const [name, setName] = useState(known?.name ?? "");
  const [pattern, setPattern] = useState(known?.pattern ?? "");
  const [to, setTo] = useState(known?.apply_to ?? "queues");
  const [priority, setPriority] = useState(String(known?.priority ?? 0));
  const [operator, setOperator] = useState(known?.operator ?? false);
  const [removing, setRemoving] = useState(false);
  const [lines, setLines] = useState(
    Object.entries(known?.definition ?? {})
      .map(([k, v]) => `${k}: ${valueText(v)}`)
      .join("\n"),
  );
  const { headers: definition, wrong } = readHeaders(lines);
  const path = pathWith(`policies/${segment(space)}/${segment(name)}`, { operator });
  const done = () => {
    void queries.invalidateQueries({ queryKey: ["policies"] });
    close();
  };
  const put = useMutation({
    mutationFn: () => send("PUT", path, { pattern, apply_to: to, definition, priority: Number(priority) || 0 }),
    onSuccess: done,
  });
  const remove = useMutation({ mutationFn: () => send("DELETE", path), onSuccess: done });
  const options = TO.some(([v]) => v === to) ? TO : [...TO, [to, to.replace("_", " ")] as const];
  if (removing) {
    return (
      <Confirm
        title={`Delete policy ${name}`}
        keep="Keep it"
        act="Delete the policy"
        danger
        disabled={remove.isPending}
        error={remove.error}
        run={() => remove.mutate()}
        close={() => setRemoving(false)}
      >
        <p>
          {plural(known?.queues ?? 0, "queue")} and {plural(known?.exchanges ?? 0, "exchange")} match it now. They are
          ruled by the next policy that matches, or by none.
        </p>
      </Confirm>
    );
  }
  return (
    <Confirm
      title={known ? `Policy ${known.name}` : "New policy"}
      keep="Cancel"
      act={known ? "Save" : `Make ${name || "the policy"}`}
      disabled={put.isPending || name === "" || pattern === "" || wrong !== null || lines.trim() === ""}
      error={put.error}
      run={() => put.mutate()}
      close={close}
    >
      {known ? null : (
        <TextField label="Name" mono value={name} onChange={setName} autoFocus placeholder="orders-ttl" />
      )}
      <TextField
        label="Pattern"
        mono
        value={pattern}
        onChange={setPattern}
        hint="A regular expression over names; ^worker\. takes what begins with worker."
        placeholder="^worker\."
      />
      <Choice label="Applies to" value={to} options={options} onChange={setTo} />
      <TextField
        label="Sets"
        mono
        rows={4}
        value={lines}
        onChange={setLines}
        wrong={wrong}
        hint="One a line: message-ttl, max-length, overflow, expires, dead-letter-exchange, delivery-limit, …"
        placeholder={"message-ttl: 60000\ndead-letter-exchange: dead"}
      />
      <TextField
        label="Priority"
        mono
        inputMode="numeric"
        value={priority}
        onChange={setPriority}
        hint="Of the policies that match a name, the one with the highest priority rules alone."
      />
      {known ? (
        <p>
          <button type="button" className="link err" onClick={() => setRemoving(true)}>
            Delete this policy
          </button>
        </p>
      ) : (
        <Check
          label="Operator's policy"
          hint="Its limits hold whatever users' policies and arguments say."
          on={operator}
          onChange={setOperator}
        />
      )}
    </Confirm>
  );
}
