import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, segment } from "../../api/client";
import type { PermissionRow } from "../../api/types";
import { TextField } from "../../parts/Form";
import { Empty } from "../../parts/Region";
import type { Column } from "../../parts/Table";
import { Confirm } from "../queues/QueueDialogs";
import { type Change, NEW } from "./AccessPage";
import { AccessTable } from "./AccessTable";
import type { AccessSearch } from "./search";
import { useEdit } from "./useEdit";

const pattern = (text: string) =>
  text === "" ? (
    <span className="meta">nothing</span>
  ) : text === ".*" ? (
    "everything"
  ) : (
    <span className="mono">{text}</span>
  );

const COLUMNS: Column<PermissionRow>[] = [
  {
    id: "user",
    head: "User",
    width: 200,
    narrow: "rest",
    sort: (p) => p.user,
    cell: (p) => <span className="mono">{p.user}</span>,
  },
  {
    id: "space",
    head: "Space",
    width: 160,
    narrow: 90,
    sort: (p) => p.space,
    cell: (p) => <span className="mono">{p.space}</span>,
  },
  { id: "configure", head: "Configure", cell: (p) => pattern(p.configure), title: (p) => p.configure },
  { id: "write", head: "Write", narrow: 90, cell: (p) => pattern(p.write), title: (p) => p.write },
  { id: "read", head: "Read", narrow: 90, cell: (p) => pattern(p.read), title: (p) => p.read },
];

const keyOf = (p: PermissionRow) => `${p.user} ${p.space}`;

export function Permissions({ search, change }: { search: AccessSearch; change: Change }) {
  const query = useQuery({
    queryKey: ["access", "permissions"],
    queryFn: ({ signal }) => get<PermissionRow[]>("permissions", {}, signal),
    refetchInterval: 3000,
  });
  const close = () => change({ open: undefined }, true);
  const known = query.data?.find((p) => keyOf(p) === search.open) ?? null;
  return (
    <>
      <AccessTable
        what="permission"
        query={query}
        columns={COLUMNS}
        keyOf={keyOf}
        texts={(p) => [p.user, p.space]}
        search={search}
        change={change}
        empty={
          <Empty title="No permissions">
            A permission lets a user open a space, and says by patterns which queues and exchanges it may configure,
            write to and read from.
          </Empty>
        }
      />
      {search.open === NEW || known ? (
        <PermissionDialog key={known ? keyOf(known) : NEW} known={known} close={close} />
      ) : null}
    </>
  );
}

function useNames(path: string): string[] {
  const { data } = useQuery({
    queryKey: ["access", "names", path],
    queryFn: ({ signal }) => get<(string | { name: string })[]>(path, {}, signal),
  });
  return (data ?? []).map((row) => (typeof row === "string" ? row : row.name));
}

function PermissionDialog({ known, close }: { known: PermissionRow | null; close: () => void }) {
  const [user, setUser] = useState(known?.user ?? "");
  const [space, setSpace] = useState(known?.space ?? "/");
  const [configure, setConfigure] = useState(known?.configure ?? ".*");
  const [write, setWrite] = useState(known?.write ?? ".*");
  const [read, setRead] = useState(known?.read ?? ".*");
  const [removing, setRemoving] = useState(false);
  const users = useNames("users");
  const spaces = useNames("spaces");
  const { put, remove } = useEdit(
    `permissions/${segment(space)}/${segment(user)}`,
    () => ({ configure, write, read }),
    close,
  );
  if (removing) {
    return (
      <Confirm
        title={`Take ${user}'s permissions in ${space} away`}
        keep="Leave them"
        act="Take them away"
        danger
        disabled={remove.isPending}
        error={remove.error}
        run={() => remove.mutate()}
        close={() => setRemoving(false)}
      >
        <p>
          <span className="mono">{user}</span> may not open the space any more.
        </p>
      </Confirm>
    );
  }
  return (
    <Confirm
      title={known ? `What ${known.user} may do in ${known.space}` : "New permission"}
      keep="Cancel"
      act={known ? "Save" : "Give the permission"}
      disabled={put.isPending || user === "" || space === ""}
      error={put.error}
      run={() => put.mutate()}
      close={close}
    >
      {known ? null : (
        <>
          <TextField label="User" mono value={user} onChange={setUser} list={users} autoFocus />
          <TextField label="Space" mono value={space} onChange={setSpace} list={spaces} />
        </>
      )}
      <TextField
        label="Configure"
        mono
        value={configure}
        onChange={setConfigure}
        hint="Names it may declare and delete. A regular expression: .* is everything, empty nothing."
      />
      <TextField
        label="Write"
        mono
        value={write}
        onChange={setWrite}
        hint="Exchanges it may publish to, queues it may bind."
      />
      <TextField
        label="Read"
        mono
        value={read}
        onChange={setRead}
        hint="Queues it may consume, exchanges it may bind from."
      />
      {known ? (
        <p>
          <button type="button" className="link err" onClick={() => setRemoving(true)}>
            Take these permissions away
          </button>
        </p>
      ) : null}
    </Confirm>
  );
}
