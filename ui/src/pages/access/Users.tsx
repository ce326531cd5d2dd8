import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, segment } from "../../api/client";
import type { UserRow } from "../../api/types";
import { Check, TextField } from "../../parts/Form";
import { plural } from "../../parts/format";
import { Pill } from "../../parts/marks";
import { Num } from "../../parts/Num";
import { Empty } from "../../parts/Region";
import type { Column } from "../../parts/Table";
import { Confirm } from "../queues/QueueDialogs";
import { type Change, NEW } from "./AccessPage";
import { AccessTable } from "./AccessTable";
import type { AccessSearch } from "./search";
import { useEdit } from "./useEdit";

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
    width: 100,
    sort: (u) => u.connections,
    cell: (u) => (u.connections === 0 ? <span className="meta">0</span> : <Num value={u.connections} />),
  },
];

const keyOf = (u: UserRow) => u.name;

export function Users({ search, change }: { search: AccessSearch; change: Change }) {
  const query = useQuery({
    queryKey: ["access", "users"],
    queryFn: ({ signal }) => get<UserRow[]>("users", {}, signal),
    refetchInterval: 3000,
  });
  const close = () => change({ open: undefined }, true);
  const known = query.data?.find((u) => u.name === search.open) ?? null;
  return (
    <>
      <AccessTable
        what="user"
        query={query}
        columns={COLUMNS}
        keyOf={keyOf}
        texts={(u) => [u.name, ...u.tags]}
        search={search}
        change={change}
        empty={<Empty title="No users">Programs log in as one; without any, none can connect over AMQP.</Empty>}
      />
      {search.open === NEW || known ? <UserDialog key={known?.name ?? NEW} known={known} close={close} /> : null}
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
  const [removing, setRemoving] = useState(false);
  const { put, remove } = useEdit(
    `users/${segment(name)}`,
    () => ({ tags: [...tags], ...(password ? { password } : {}) }),
    close,
  );
  const flip = (tag: string) => (on: boolean) => {
    const next = new Set(tags);
    if (on) next.add(tag);
    else next.delete(tag);
    setTags(next);
  };
  if (removing) {
    return (
      <Confirm
        title={`Delete user ${name}`}
        keep="Keep it"
        act="Delete the user"
        danger
        disabled={remove.isPending}
        error={remove.error}
        run={() => remove.mutate()}
        close={() => setRemoving(false)}
      >
        <p>
          It goes with its permissions
          {known && known.connections > 0 ? `, and its ${plural(known.connections, "connection")} are closed` : ""}.
        </p>
      </Confirm>
    );
  }
  return (
    <Confirm
      title={known ? `User ${known.name}` : "New user"}
      keep="Cancel"
      act={known ? "Save" : `Make ${name || "the user"}`}
      disabled={put.isPending || name === ""}
      error={put.error}
      run={() => put.mutate()}
      close={close}
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
      {known ? (
        <p>
          <button type="button" className="link err" onClick={() => setRemoving(true)}>
            Delete this user
          </button>
        </p>
      ) : (
        <p className="meta">It may open a space once it has a permission there.</p>
      )}
    </Confirm>
  );
}
