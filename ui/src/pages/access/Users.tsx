import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, segment } from "../../api/client";
import type { UserRow } from "../../api/types";
import { EditDialog, useEdit } from "../../parts/Confirm";
import { Check, TextField } from "../../parts/Form";
import { count, plural } from "../../parts/format";
import { Pill } from "../../parts/marks";
import { Empty } from "../../parts/Region";
import { ShortList } from "../../parts/ShortList";
import type { Column } from "../../parts/Table";
import { Limited, LimitField } from "./Limited";
import { readLimit } from "./readLimit";
import { listState, NEW, type TabProps } from "./search";

const COLUMNS: Column<UserRow>[] = [
  {
    id: "name",
    head: "User",
    width: 240,
    narrow: "rest",
    sort: (u) => u.name,
    cell: (u) => <span className="mono">{u.name}</span>,
  },
  {
    id: "tags",
    head: "Tags",
    width: 260,
    narrow: 130,
    cell: (u) => (
      <span className="flex pills">
        {u.tags.map((tag) => (
          <Pill key={tag}>{tag}</Pill>
        ))}
      </span>
    ),
  },
  {
    id: "spaces",
    head: "May open",
    cell: (u) =>
      u.spaces.length === 0 ? (
        <span className="meta">no space: give it a permission</span>
      ) : (
        <span className="mono dim">{u.spaces.join(" ")}</span>
      ),
  },
  {
    id: "password",
    head: "Password",
    width: 100,
    cell: (u) => (u.has_password ? "set" : <span className="meta">none</span>),
  },
  {
    id: "connections",
    head: "Connections",
    num: true,
    width: 120,
    sort: (u) => u.connections,
    cell: (u) => <Limited value={u.connections} max={u.max_connections} />,
  },
  {
    id: "channels",
    head: "Channels at most",
    num: true,
    width: 130,
    sort: (u) => u.max_channels,
    cell: (u) => (u.max_channels === null ? <span className="meta">no limit</span> : count(u.max_channels)),
  },
];

const keyOf = (u: UserRow) => u.name;

export function Users(own: TabProps) {
  const query = useQuery({
    queryKey: ["access", "users"],
    queryFn: ({ signal }) => get<UserRow[]>("users", {}, signal),
    refetchInterval: 3000,
  });
  const close = () => own.change({ open: undefined }, true);
  const known = query.data?.find((u) => u.name === own.search.open) ?? null;
  return (
    <>
      <ShortList
        what="user"
        query={query}
        columns={COLUMNS}
        keyOf={keyOf}
        texts={(u) => [u.name, ...u.tags]}
        state={listState(own)}
        empty={<Empty title="No users">Programs log in as one; without any, none can connect over AMQP.</Empty>}
      />
      {own.search.open === NEW || known ? <UserDialog key={known?.name ?? NEW} known={known} close={close} /> : null}
    </>
  );
}

const TAGS = [
  ["administrator", "May do everything, here and in the management API."],
  ["monitoring", "May see every space, its connections and channels."],
  ["policymaker", "May make policies in spaces it has permissions in."],
  ["management", "May use the management API for its own spaces."],
] as const;

function UserDialog({ known, close }: { known: UserRow | null; close: () => void }) {
  const [name, setName] = useState(known?.name ?? "");
  const [password, setPassword] = useState("");
  const [tags, setTags] = useState<ReadonlySet<string>>(new Set(known?.tags));
  const [connections, setConnections] = useState(String(known?.max_connections ?? ""));
  const [channels, setChannels] = useState(String(known?.max_channels ?? ""));
  const most = { max_connections: readLimit(connections), max_channels: readLimit(channels) };
  const edit = useEdit(
    ["access"],
    `users/${segment(name)}`,
    () => ({ tags: [...tags], limits: most, ...(password ? { password } : {}) }),
    close,
  );
  const flip = (tag: string) => (on: boolean) => {
    const next = new Set(tags);
    if (on) next.add(tag);
    else next.delete(tag);
    setTags(next);
  };
  return (
    <EditDialog
      title={known ? `User ${known.name}` : "New user"}
      act={known ? "Save" : `Make ${name || "the user"}`}
      disabled={name === "" || most.max_connections === undefined || most.max_channels === undefined}
      edit={edit}
      close={close}
      removal={
        known && {
          link: "Delete this user",
          title: `Delete user ${name}`,
          keep: "Keep it",
          act: "Delete the user",
          words: `It goes with its permissions${
            known.connections > 0
              ? `, and its ${plural(known.connections, "connection")} ${known.connections === 1 ? "is" : "are"} closed`
              : ""
          }.`,
        }
      }
    >
      {known ? null : <TextField label="Name" mono value={name} onChange={setName} autoFocus placeholder="orders" />}
      <TextField
        label="Password"
        mono
        secret
        value={password}
        onChange={setPassword}
        hint={
          known
            ? "Left empty, the one it has stays."
            : "Left empty, no password opens the account; a client certificate may."
        }
      />
      {TAGS.map(([tag, words]) => (
        <Check key={tag} label={tag} hint={words} on={tags.has(tag)} onChange={flip(tag)} />
      ))}
      <LimitField label="Connections" value={connections} onChange={setConnections} />
      <LimitField label="Channels" value={channels} onChange={setChannels} />
      {known ? null : <p className="meta">It may open a space once it has a permission there.</p>}
    </EditDialog>
  );
}
