// Policies of the space: settings for every queue and exchange whose name matches, changed for all of them at once.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, segment } from "../../api/client";
import type { PolicyRow } from "../../api/types";
import { EditDialog, useEdit } from "../../parts/Confirm";
import { Check, Choice, TextField } from "../../parts/Form";
import { plural } from "../../parts/format";
import { MiddleCut } from "../../parts/MiddleCut";
import { Pill } from "../../parts/marks";
import { Num } from "../../parts/Num";
import { Empty } from "../../parts/Region";
import { ShortList } from "../../parts/ShortList";
import type { Column } from "../../parts/Table";
import { pathWith } from "./action";
import { readHeaders } from "./message";
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
    cell: (p) => <MiddleCut text={p.pattern} />,
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
  const query = useQuery({
    queryKey: ["policies", space],
    queryFn: ({ signal }) => get<PolicyRow[]>("policies", { space }, signal),
    refetchInterval: 3000,
  });
  const opened = query.data?.find((p) => policyKey(p) === search.policy) ?? null;
  const close = () => change({ make: undefined, policy: undefined }, true);
  return (
    <>
      <ShortList
        what="policy"
        many="policies"
        query={query}
        columns={COLUMNS}
        keyOf={policyKey}
        texts={(p) => [p.name, p.pattern, definitionText(p)]}
        state={{
          q: search.q,
          sort: search.sort,
          onSort: (sort) => change({ sort }, true),
          open: search.policy,
          onOpen: (policy) => change({ policy }),
        }}
        empty={
          <Empty title="No policies">
            A policy sets things for every queue and exchange whose name matches a pattern: how long messages live, how
            many a queue holds, where dead letters go. Changing it changes all of them at once, while they run.{" "}
            <button type="button" className="link" onClick={() => change({ make: "policy" })}>
              Make one
            </button>
          </Empty>
        }
      />
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
  const [name, setName] = useState(known?.name ?? "");
  const [pattern, setPattern] = useState(known?.pattern ?? "");
  const [to, setTo] = useState(known?.apply_to ?? "queues");
  const [priority, setPriority] = useState(String(known?.priority ?? 0));
  const [operator, setOperator] = useState(known?.operator ?? false);
  const [lines, setLines] = useState(
    Object.entries(known?.definition ?? {})
      .map(([k, v]) => `${k}: ${valueText(v)}`)
      .join("\n"),
  );
  const { headers: definition, wrong } = readHeaders(lines);
  const path = pathWith(`policies/${segment(space)}/${segment(name)}`, { operator });
  const edit = useEdit(
    ["policies"],
    path,
    () => ({ pattern, apply_to: to, definition, priority: Number(priority) || 0 }),
    close,
  );
  const options = TO.some(([v]) => v === to) ? TO : [...TO, [to, to.replace("_", " ")] as const];
  return (
    <EditDialog
      title={known ? `Policy ${known.name}` : "New policy"}
      act={known ? "Save" : `Make ${name || "the policy"}`}
      disabled={name === "" || pattern === "" || wrong !== null || lines.trim() === ""}
      edit={edit}
      close={close}
      removal={
        known && {
          link: "Delete this policy",
          title: `Delete policy ${name}`,
          keep: "Keep it",
          act: "Delete the policy",
          words: `${plural(known.queues, "queue")} and ${plural(known.exchanges, "exchange")} match it now. They are ruled by the next policy that matches, or by none.`,
        }
      }
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
      {known ? null : (
        <Check
          label="Operator's policy"
          hint="Its limits hold whatever users' policies and arguments say."
          on={operator}
          onChange={setOperator}
        />
      )}
    </EditDialog>
  );
}
