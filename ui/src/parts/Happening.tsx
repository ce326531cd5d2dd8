// One happening: its time, its glyph, one line in which every known noun is a link.

import { Link } from "@tanstack/react-router";
import { Fragment, memo, type ReactNode } from "react";
import type { Happening as HappeningRow } from "../api/types";
import { Glyph, type GlyphKind } from "./marks";
import { queueAt } from "./queueAt";
import { Time } from "./Time";

/** Names the page knows, by which words of a line become links. */
export interface Nouns {
  services: ReadonlySet<string>;
  /** Instance to its service. */
  instances: ReadonlyMap<string, string>;
}

export function glyphOf(h: Pick<HappeningRow, "severity" | "name">): GlyphKind {
  if (h.severity === "error") return "failing";
  if (h.severity === "warn") return "degraded";
  return /attached|ready|started|listening/.test(h.name) ? "ready" : "change";
}

/** Splits a line into words and what is between them. */
const words = (line: string): string[] => line.split(/([A-Za-z0-9][\w.\-/]*[\w]|[A-Za-z0-9])/);

function serviceLinks(text: string, nouns: Nouns): ReactNode[] {
  return words(text).map((word, i) => {
    const service = nouns.services.has(word) ? word : nouns.instances.get(word);
    if (service === undefined) return word;
    return (
      <Link key={i} to="/services" search={service === word ? { service } : { service, instance: word }}>
        {word}
      </Link>
    );
  });
}

/** The line with its nouns as links: the queue that the happening itself names, services and instances that are known. */
export function linked(row: Pick<HappeningRow, "line" | "queue" | "space">, nouns: Nouns): ReactNode[] {
  const { line, queue } = row;
  const at = queue === null ? null : queueAt(line, queue);
  if (queue === null || at === null) return serviceLinks(line, nouns);
  return [
    line.slice(0, at),
    <Link
      key="queue"
      className="mono"
      to="/queues/$queueSpace/$queueName"
      params={{ queueSpace: row.space, queueName: queue }}
    >
      {queue}
    </Link>,
    <Fragment key="rest">{serviceLinks(line.slice(at + queue.length), nouns)}</Fragment>,
  ];
}

export const HappeningLine = memo(function HappeningLine({ row, nouns }: { row: HappeningRow; nouns: Nouns }) {
  return (
    <li>
      <span className="meta">
        <Time at={row.at_us} />
      </span>
      <Glyph kind={glyphOf(row)} />
      <span className="cut" title={row.line}>
        {linked(row, nouns)}
      </span>
    </li>
  );
});
