// Where a message would go, asked of the broker while it is typed. Nothing is published.

import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { problemFrom, send } from "../../api/client";
import type { WouldRoute as Answer } from "../../api/types";
import { plural } from "../../parts/format";
import { QueueName } from "./links";

/** A value that has stood still for `ms`. */
export function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

export function useWouldRoute(space: string, exchange: string, key: string, headers: Record<string, unknown>) {
  const wish = useSettled(JSON.stringify({ space, exchange, routing_key: key, headers }), 200);
  return useQuery({
    queryKey: ["route", wish],
    queryFn: () => send<Answer>("POST", "route", JSON.parse(wish)),
    placeholderData: (before) => before,
    refetchInterval: 5000,
  });
}

interface WouldRouteProps {
  space: string;
  exchange: string;
  routingKey: string;
  headers: Record<string, unknown>;
}

const NAMED_MAX = 8;

export function WouldRoute({ space, exchange, routingKey, headers }: WouldRouteProps) {
  const { data, error } = useWouldRoute(space, exchange, routingKey, headers);
  return (
    <p className="would-route" aria-live="polite">
      {error ? (
        <span className="err">{problemFrom(error).detail}</span>
      ) : !data ? (
        "–"
      ) : data.queues.length === 0 ? (
        <span className="warn">
          No queue would take it{routingKey === "" ? " under an empty key" : ""}: it would be dropped, or returned if it
          is mandatory.
        </span>
      ) : (
        <>
          Would reach {plural(data.queues.length, "queue")}:{" "}
          {data.queues.slice(0, NAMED_MAX).map((name, i) => (
            <span key={name}>
              {i > 0 ? ", " : ""}
              <QueueName space={space} name={name} />
            </span>
          ))}
          {data.queues.length > NAMED_MAX ? ` and ${data.queues.length - NAMED_MAX} more` : ""}
          {data.routing_key ? (
            <>
              , under the key <span className="mono">{data.routing_key}</span>
            </>
          ) : null}
          .
        </>
      )}
    </p>
  );
}
