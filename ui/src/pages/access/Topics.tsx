// Topic permissions: which routing keys a user may publish with and bind by, exchange by exchange.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, segment } from "../../api/client";
import type { TopicPermissionRow } from "../../api/types";
import { EditDialog, useEdit } from "../../parts/Confirm";
import { TextField } from "../../parts/Form";
import { MiddleCut } from "../../parts/MiddleCut";
import { Empty } from "../../parts/Region";
import { ShortList } from "../../parts/ShortList";
import type { Column } from "../../parts/Table";
import { pathWith } from "../queues/action";
import { MIDDLE_WIDTH, NARROW_WIDTH, read, space, user, write } from "./columns";
import { listState, NEW, type TabProps } from "./search";
import { useNames } from "./useNames";

const COLUMNS: Column<TopicPermissionRow>[] = [
  user,
  space,
  {
    id: "exchange",
    head: "Exchange",
    width: MIDDLE_WIDTH,
    narrow: NARROW_WIDTH,
    sort: (p) => p.exchange,
    cell: (p) => <MiddleCut text={p.exchange} />,
  },
  write,
  read,
];

const keyOf = (p: TopicPermissionRow) => `${p.user} ${p.space} ${p.exchange}`;

export function Topics(own: TabProps) {
  const query = useQuery({
    queryKey: ["access", "topic-permissions"],
    queryFn: ({ signal }) => get<TopicPermissionRow[]>("topic-permissions", {}, signal),
    refetchInterval: 3000,
  });
  const known = query.data?.find((p) => keyOf(p) === own.search.open) ?? null;
  return (
    <>
      <ShortList
        what="topic permission"
        query={query}
        columns={COLUMNS}
        keyOf={keyOf}
        texts={(p) => [p.user, p.space, p.exchange]}
        state={listState(own)}
        empty={
          <Empty title="No topic permissions">
            Whoever may write to or read from a topic exchange uses any routing key there. A topic permission holds a
            user to keys that match a pattern.
          </Empty>
        }
      />
      {own.search.open === NEW || known ? (
        <TopicDialog
          key={known ? keyOf(known) : NEW}
          known={known}
          close={() => own.change({ open: undefined }, true)}
        />
      ) : null}
    </>
  );
}

function TopicDialog({ known, close }: { known: TopicPermissionRow | null; close: () => void }) {
  const [user, setUser] = useState(known?.user ?? "");
  const [space, setSpace] = useState(known?.space ?? "/");
  const [exchange, setExchange] = useState(known?.exchange ?? "amq.topic");
  const [write, setWrite] = useState(known?.write ?? ".*");
  const [read, setRead] = useState(known?.read ?? ".*");
  const users = useNames("users");
  const spaces = useNames("spaces");
  const exchanges = useNames("exchanges", { space });
  const path = pathWith(`topic-permissions/${segment(space)}/${segment(user)}`, { exchange });
  const edit = useEdit(["access"], path, () => ({ write, read }), close);
  return (
    <EditDialog
      title={known ? `Keys of ${known.user} at ${known.exchange} in ${known.space}` : "New topic permission"}
      act={known ? "Save" : "Hold it to these keys"}
      disabled={user === "" || space === "" || exchange === ""}
      edit={edit}
      close={close}
      removal={
        known && {
          link: "Take this topic permission away",
          title: `Let ${user} use any key at ${exchange}`,
          keep: "Leave it",
          act: "Take it away",
          words: (
            <>
              <span className="mono">{user}</span> may then use every routing key at{" "}
              <span className="mono">{exchange}</span> that its permissions in <span className="mono">{space}</span> let
              it reach.
            </>
          ),
        }
      }
    >
      {known ? null : (
        <>
          <TextField label="User" mono value={user} onChange={setUser} list={users} autoFocus />
          <TextField label="Space" mono value={space} onChange={setSpace} list={spaces} />
          <TextField label="Exchange" mono value={exchange} onChange={setExchange} list={exchanges} />
        </>
      )}
      <TextField
        label="Write"
        mono
        value={write}
        onChange={setWrite}
        hint="Routing keys it may publish with. A regular expression: ^orders\. is those that begin so, empty none."
      />
      <TextField label="Read" mono value={read} onChange={setRead} hint="Routing keys it may bind queues by." />
    </EditDialog>
  );
}
