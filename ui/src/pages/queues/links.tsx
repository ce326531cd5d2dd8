// The broker's nouns as links: queues, exchanges and connections, each to its page.

import { Link } from "@tanstack/react-router";
import { cutMiddle } from "../../parts/format";

/** What the default exchange, which has no name, is called in paths. */
const DEFAULT_ALIAS = "amq.default";
export const exchangeName = (name: string): string => name || "(default)";
export const exchangePath = (name: string): string => name || DEFAULT_ALIAS;

export function QueueName({ space, name, max }: { space: string; name: string; max?: number }) {
  return (
    <Link
      className="mono"
      title={name}
      to="/queues/$queueSpace/$queueName"
      params={{ queueSpace: space, queueName: name }}
    >
      {max ? cutMiddle(name, max) : name}
    </Link>
  );
}

export function ExchangeName({ space, name, max }: { space: string; name: string; max?: number }) {
  const shown = exchangeName(name);
  return (
    <Link
      className="mono"
      title={shown}
      to="/queues/-/exchanges/$exchangeSpace/$exchangeName"
      params={{ exchangeSpace: space, exchangeName: exchangePath(name) }}
    >
      {max ? cutMiddle(shown, max) : shown}
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
