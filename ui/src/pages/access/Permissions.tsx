import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, segment } from "../../api/client";
import type { PermissionRow } from "../../api/types";
import { EditDialog, useEdit } from "../../parts/Confirm";
import { TextField } from "../../parts/Form";
import { Empty } from "../../parts/Region";
import { ShortList } from "../../parts/ShortList";
import type { Column } from "../../parts/Table";
import { MIDDLE_WIDTH, NARROW_WIDTH, read, space, user, write } from "./columns";
import { Pattern } from "./Pattern";
import { listState, NEW, type TabProps } from "./search";
import { useNames } from "./useNames";

const COLUMNS: Column<PermissionRow>[] = [
  user,
  { ...space, narrow: NARROW_WIDTH },
  { id: "configure", head: "Configure", width: MIDDLE_WIDTH, cell: (p) => <Pattern text={p.configure} /> },
  write,
  read,
];

const keyOf = (p: PermissionRow) => `${p.user} ${p.space}`;

export function Permissions(own: TabProps) {
  const query = useQuery({
    queryKey: ["access", "permissions"],
    queryFn: ({ signal }) => get<PermissionRow[]>("permissions", {}, signal),
    refetchInterval: 3000,
  });
  const known = query.data?.find((p) => keyOf(p) === own.search.open) ?? null;
  return (
    <>
      <ShortList
        what="permission"
        query={query}
        columns={COLUMNS}
        keyOf={keyOf}
        texts={(p) => [p.user, p.space]}
        state={listState(own)}
        empty={
          <Empty title="No permissions">
            A permission lets a user open a space, and says by patterns which queues and exchanges it may configure,
            write to and read from.
          </Empty>
        }
      />
      {own.search.open === NEW || known ? (
        <PermissionDialog
          key={known ? keyOf(known) : NEW}
          known={known}
          close={() => own.change({ open: undefined }, true)}
        />
      ) : null}
    </>
  );
}

function PermissionDialog({ known, close }: { known: PermissionRow | null; close: () => void }) {
  const [user, setUser] = useState(known?.user ?? "");
  const [space, setSpace] = useState(known?.space ?? "/");
  const [configure, setConfigure] = useState(known?.configure ?? ".*");
  const [write, setWrite] = useState(known?.write ?? ".*");
  const [read, setRead] = useState(known?.read ?? ".*");
  const users = useNames("users");
  const spaces = useNames("spaces");
  const path = `permissions/${segment(space)}/${segment(user)}`;
  const edit = useEdit(["access"], path, () => ({ configure, write, read }), close);
  return (
    <EditDialog
      title={known ? `What ${known.user} may do in ${known.space}` : "New permission"}
      act={known ? "Save" : "Give the permission"}
      disabled={user === "" || space === ""}
      edit={edit}
      close={close}
      removal={
        known && {
          link: "Take these permissions away",
          title: `Take ${user}'s permissions in ${space} away`,
          keep: "Leave them",
          act: "Take them away",
          words: (
            <>
              <span className="mono">{user}</span> may not open the space any more.
            </>
          ),
        }
      }
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
    </EditDialog>
  );
}
