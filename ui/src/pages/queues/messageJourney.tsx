// A message's way as its queue knows it: where it came from, where it is, where it goes.

import type { PeekedMessage, QueueDetail } from "../../api/types";
import { serverNowUs } from "../../live/feed";
import { clockMs, count, duration } from "../../parts/format";
import type { JourneyStep } from "../../parts/Journey";
import { ServiceName } from "../../parts/marks";
import { ExchangeName, exchangeName, QueueName } from "./links";
import { deathOf, LONG_HELD_NS, placeOf, senderOf } from "./queue";

export function journeyOf(m: PeekedMessage, queue: QueueDetail): JourneyStep[] {
  const sender = senderOf(m);
  const death = deathOf(m, queue.name);
  const steps: JourneyStep[] = [
    {
      at: "done",
      what: sender ? <>Published by {sender}</> : "Published",
      note: m.redelivered && !m.holder ? "delivered before and returned to the queue" : null,
      time: m.queued_us === null ? "" : clockMs(m.queued_us),
    },
  ];
  if (death) {
    steps.push({
      at: "done",
      what: (
        <>
          Dead-lettered from <QueueName space={queue.space} name={death.queue} />
        </>
      ),
      note: `${death.reason}${death.count > 1 ? `, ${count(death.count)} times` : ""}; it had come by ${exchangeName(death.exchange)} with ${death.key || "no key"}`,
      time: "",
      tone: "warn",
    });
  }
  steps.push({
    at: "done",
    what: (
      <>
        Routed by <ExchangeName space={queue.space} name={m.exchange} />
      </>
    ),
    note: m.routing_key ? `key ${m.routing_key}` : "no key",
    time: "",
  });
  return [...steps, ...(m.holder ? held(m) : waiting(m, queue))];
}

function held(m: PeekedMessage): JourneyStep[] {
  const h = m.holder;
  if (!h) return [];
  const long = h.held_ns > LONG_HELD_NS;
  return [
    {
      at: "now",
      what: (
        <>
          Delivered to <ServiceName name={h.service} link={false} />
        </>
      ),
      note: `${h.connection}, channel ${h.channel}${m.redelivered ? ", not for the first time" : ""}`,
      time: duration(h.held_ns),
      tone: long ? "warn" : undefined,
    },
    { at: "next", what: "Ack", note: long ? "held for over 30 s" : null, time: "" },
  ];
}

function waiting(m: PeekedMessage, queue: QueueDetail): JourneyStep[] {
  const waited = m.queued_us === null ? null : Math.max(0, (serverNowUs() - m.queued_us) * 1000);
  const consumers = [...new Set(queue.consumer_list.map((c) => c.service ?? c.connection))];
  return [
    {
      at: "now",
      what: `Waiting, place ${count(placeOf(m))} of ${count(Math.max(queue.ready, placeOf(m)))}`,
      note:
        queue.out_rate > 0.05
          ? `next within ${duration((placeOf(m) / queue.out_rate) * 1e9)} at this rate`
          : "nothing leaves the queue now",
      time: waited === null ? "" : duration(waited),
      tone: queue.tone === "normal" ? undefined : queue.tone,
    },
    {
      at: "next",
      what:
        consumers.length === 0 ? (
          "Deliver, once a consumer is here"
        ) : (
          <>
            Deliver to <ServiceName name={consumers[0] as string} link={false} />
          </>
        ),
      note: consumers.length > 1 ? `or ${consumers.slice(1, 4).join(", ")}${consumers.length > 4 ? ", …" : ""}` : null,
      time: "",
    },
    { at: "next", what: "Ack", note: null, time: "" },
  ];
}
