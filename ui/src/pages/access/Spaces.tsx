import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { get, segment } from "../../api/client";
import type { SpaceRow } from "../../api/types";
import { EditDialog, useEdit } from "../../parts/Confirm";
import { TextField } from "../../parts/Form";
import { plural } from "../../parts/format";
import { Num } from "../../parts/Num";
import { Empty } from "../../parts/Region";
import { ShortList } from "../../parts/ShortList";
import type { Column } from "../../parts/Table";
import { Limited, LimitField } from "./Limited";
import { readLimit } from "./readLimit";
import { listState, NEW, type TabProps } from "./search";

const quiet = (v: number) => (v === 0 ? <span className="meta">0</span> : <Num value={v} />);

const COLUMNS: Column<SpaceRow>[] = [
  {
    id: "name",
    head: "Space",
    narrow: "rest",
    sort: (s) => s.name,
    cell: (s) => (
      <Link className="mono" to="/queues" search={{ space: s.name }}>
        {s.name}
      </Link>
    ),
  },
  { id: "description", head: "Description", cell: (s) => <span className="dim">{s.description}</span> },
  {
    id: "queues",
    head: "Queues",
    num: true,
    width: 120,
    narrow: 76,
    sort: (s) => s.queues,
    cell: (s) => <Limited value={s.queues} max={s.max_queues} />,
  },
  {
    id: "exchanges",
    head: "Exchanges",
    num: true,
    width: 90,
    sort: (s) => s.exchanges,
    cell: (s) => quiet(s.exchanges),
  },
  {
    id: "connections",
    head: "Connections",
    num: true,
    width: 120,
    sort: (s) => s.connections,
    cell: (s) => <Limited value={s.connections} max={s.max_connections} />,
  },
  { id: "ready", head: "Ready", num: true, width: 90, narrow: 76, sort: (s) => s.ready, cell: (s) => quiet(s.ready) },
  { id: "unacked", head: "Unacked", num: true, width: 90, sort: (s) => s.unacked, cell: (s) => quiet(s.unacked) },
];

const keyOf = (s: SpaceRow) => s.name;

export function Spaces(own: TabProps) {
  const query = useQuery({
    queryKey: ["access", "spaces"],
    queryFn: async ({ signal }) => {
      const names = await get<string[]>("spaces", {}, signal);
      return Promise.all(names.map((name) => get<SpaceRow>(`spaces/${segment(name)}`, {}, signal)));
    },
    refetchInterval: 3000,
  });
  const close = () => own.change({ open: undefined }, true);
  const known = query.data?.find((s) => s.name === own.search.open) ?? null;
  return (
    <>
      <ShortList
        what="space"
        query={query}
        columns={COLUMNS}
        keyOf={keyOf}
        texts={(s) => [s.name, s.description]}
        state={listState(own)}
        empty={<Empty title="No spaces">A space keeps services, queues and messages apart from those of others.</Empty>}
      />
      {own.search.open === NEW ? <NewSpace close={close} /> : null}
      {known ? <SpaceDialog key={known.name} space={known} close={close} /> : null}
    </>
  );
}

function NewSpace({ close }: { close: () => void }) {
  const [name, setName] = useState("");
  const edit = useEdit(["access"], `spaces/${segment(name)}`, () => undefined, close);
  return (
    <EditDialog title="New space" act={`Make ${name || "the space"}`} disabled={name === ""} edit={edit} close={close}>
      <TextField
        label="Name"
        mono
        value={name}
        onChange={setName}
        autoFocus
        placeholder="blue"
        hint="An AMQP virtual host: services, queues and messages in it are apart from those of other spaces."
      />
    </EditDialog>
  );
}

const DEFAULT_SPACE = "/";

function SpaceDialog({ space, close }: { space: SpaceRow; close: () => void }) {
  const [connections, setConnections] = useState(String(space.max_connections ?? ""));
  const [queues, setQueues] = useState(String(space.max_queues ?? ""));
  const most = { max_connections: readLimit(connections), max_queues: readLimit(queues) };
  const path = `spaces/${segment(space.name)}`;
  const limits = useEdit(["access"], `${path}/limits`, () => most, close);
  const whole = useEdit(["access"], path, () => undefined, close);
  const held = space.ready + space.unacked;
  const holds = `It holds ${plural(space.queues, "queue")}, ${plural(space.exchanges, "exchange")} and ${plural(held, "message")}; ${plural(space.connections, "connection")} ${space.connections === 1 ? "is" : "are"} open in it.`;
  return (
    <EditDialog
      title={`Space ${space.name}`}
      act="Save"
      disabled={most.max_connections === undefined || most.max_queues === undefined}
      edit={{ put: limits.put, remove: whole.remove }}
      close={close}
      removal={
        space.name === DEFAULT_SPACE
          ? null
          : {
              link: "Delete this space",
              title: `Delete space ${space.name}`,
              keep: "Keep it",
              act: `Delete the space and ${plural(held, "message")}`,
              words: `${holds} Deleting it takes all of that away and closes its connections; this cannot be undone.`,
            }
      }
    >
      <p>
        {holds}{" "}
        <Link to="/queues" search={{ space: space.name }}>
          Look at its queues
        </Link>
        .
      </p>
      <LimitField label="Connections" value={connections} onChange={setConnections} />
      <LimitField label="Queues" value={queues} onChange={setQueues} />
      {space.name === DEFAULT_SPACE ? (
        <p className="meta">The default space cannot be deleted: programs that name none mean it.</p>
      ) : null}
    </EditDialog>
  );
}
