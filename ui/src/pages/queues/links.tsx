// The broker's nouns as links: queues, exchanges and connections, each to its page.

import { Link } from "@tanstack/react-router";
import { MiddleCut } from "../../parts/MiddleCut";
import { peerOf } from "./connection";

/** What the default exchange, which has no name, is called in paths. */
const DEFAULT_ALIAS = "amq.default";
export const exchangeName = (name: string): string => name || "(default)";
export const exchangePath = (name: string): string => name || DEFAULT_ALIAS;

export function QueueName({ space, name }: { space: string; name: string }) {
  return (
    <Link className="cut" to="/queues/$queueSpace/$queueName" params={{ queueSpace: space, queueName: name }}>
      <MiddleCut text={name} />
    </Link>
  );
}

export function ExchangeName({ space, name }: { space: string; name: string }) {
  return (
    <Link
      className="cut"
      to="/queues/-/exchanges/$exchangeSpace/$exchangeName"
      params={{ exchangeSpace: space, exchangeName: exchangePath(name) }}
    >
      <MiddleCut text={exchangeName(name)} />
    </Link>
  );
}

/** A connection as its client named it, or the peer alone: the address that it reached is the same for all of them. */
export function ConnectionLabel({ name }: { name: string }) {
  return <MiddleCut text={peerOf(name)} whole={name} />;
}

export function ConnectionName({ id, name }: { id: number; name: string }) {
  return (
    <Link className="cut" title={name} to="/queues/-/connections/$connectionId" params={{ connectionId: String(id) }}>
      <ConnectionLabel name={name} />
    </Link>
  );
}
