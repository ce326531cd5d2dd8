import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { get, segment } from "../../api/client";
import type { SpaceRow } from "../../api/types";
import { TextField } from "../../parts/Form";
import { plural } from "../../parts/format";
import { Num } from "../../parts/Num";
import { Empty } from "../../parts/Region";
import type { Column } from "../../parts/Table";
import { Confirm } from "../queues/QueueDialogs";
import { type Change, NEW } from "./AccessPage";
import { AccessTable } from "./AccessTable";
import type { AccessSearch } from "./search";
import { useEdit } from "./useEdit";

const quiet = (v: number) => (v === 0 ? <span className="meta">0</span> : <Num value={v} />);
const limited = (v: number, max: number | null) => (
  <>
    {quiet(v)}
    {max === null ? null : (
      <span className="meta">
        {" "}
        of <Num value={max} />
      </span>
    )}
  </>
);

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
    cell: (s) => limited(s.queues, s.max_queues),
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
    cell: (s) => limited(s.connections, s.max_connections),
  },
  { id: "ready", head: "Ready", num: true, width: 90, narrow: 76, sort: (s) => s.ready, cell: (s) => quiet(s.ready) },
  { id: "unacked", head: "Unacked", num: true, width: 90, sort: (s) => s.unacked, cell: (s) => quiet(s.unacked) },
];

const keyOf = (s: SpaceRow) => s.name;

export function Spaces({ search, change }: { search: AccessSearch; change: Change }) {
  const query = useQuery({
    queryKey: ["access", "spaces"],
    queryFn: async ({ signal }) => {
      const names = await get<string[]>("spaces", {}, signal);
      return Promise.all(names.map((name) => get<SpaceRow>(`spaces/${segment(name)}`, {}, signal)));
    },
    refetchInterval: 3000,
  });
  const close = () => change({ open: undefined }, true);
  const known = query.data?.find((s) => s.name === search.open) ?? null;
  return (
    <>
      <AccessTable
        what="space"
        query={query}
        columns={COLUMNS}
        keyOf={keyOf}
        texts={(s) => [s.name, s.description]}
        search={search}
        change={change}
        empty={<Empty title="No spaces">A space keeps services, queues and messages apart from those of others.</Empty>}
      />
      {search.open === NEW ? <NewSpace close={close} /> : null}
      {known ? <DeleteSpace key={known.name} space={known} close={close} /> : null}
    </>
  );
}

function NewSpace({ close }: { close: () => void }) {
  const [name, setName] = useState("");
  const { put } = useEdit(`spaces/${segment(name)}`, () => undefined, close);
  return (
    <Confirm
      title="New space"
      keep="Cancel"
      act={`Make ${name || "the space"}`}
      disabled={put.isPending || name === ""}
      error={put.error}
      run={() => put.mutate()}
      close={close}
    >
      <TextField
        label="Name"
        mono
        value={name}
        onChange={setName}
        autoFocus
        placeholder="blue"
        hint="An AMQP virtual host: services, queues and messages in it are apart from those of other spaces."
      />
    </Confirm>
  );
}

const DEFAULT_SPACE = "/";

function DeleteSpace({ space, close }: { space: SpaceRow; close: () => void }) {
  const { remove } = useEdit(`spaces/${segment(space.name)}`, () => undefined, close);
  const held = space.ready + space.unacked;
  return (
    <Confirm
      title={`Space ${space.name}`}
      keep="Keep it"
      act={`Delete the space and ${plural(held, "message")}`}
      danger
      disabled={remove.isPending || space.name === DEFAULT_SPACE}
      error={remove.error}
      run={() => remove.mutate()}
      close={close}
    >
      <p>
        It holds {plural(space.queues, "queue")}, {plural(space.exchanges, "exchange")} and {plural(held, "message")};{" "}
        {plural(space.connections, "connection")} {space.connections === 1 ? "is" : "are"} open in it.{" "}
        <Link to="/queues" search={{ space: space.name }}>
          Look at its queues
        </Link>
        .
      </p>
      <p>
        {space.name === DEFAULT_SPACE
          ? "The default space stays: programs that name none mean it."
          : "Deleting it takes all of that away and closes its connections; this cannot be undone."}
      </p>
    </Confirm>
  );
}
