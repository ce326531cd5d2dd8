// The broker's nouns as links: queues, exchanges and connections, each to its page.

import { Link } from "@tanstack/react-router";
import { MiddleCut } from "../../parts/MiddleCut";

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

export function ConnectionName({ id, name }: { id: number; name: string }) {
  return (
    <Link className="mono" title={name} to="/queues/-/connections/$connectionId" params={{ connectionId: String(id) }}>
      {name}
    </Link>
  );
}
