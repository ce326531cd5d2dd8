// One happening: its time, its glyph, one line in which every known noun is a link.

import { Link } from "@tanstack/react-router";
import { memo, type ReactNode } from "react";
import type { Happening as HappeningRow } from "../api/types";
import { Glyph, type GlyphKind } from "./marks";
import { Time } from "./Time";

/** Names the page knows, by which words of a line become links. */
export interface Nouns {
  services: ReadonlySet<string>;
  /** Instance to its service. */
  instances: ReadonlyMap<string, string>;
  /** Queue to its space. */
  queues: ReadonlyMap<string, string>;
}

export function glyphOf(h: Pick<HappeningRow, "severity" | "name">): GlyphKind {
  if (h.severity === "error") return "failing";
  if (h.severity === "warn") return "degraded";
  return /attached|ready|started|listening/.test(h.name) ? "ready" : "change";
}

/** Splits a line into words and what is between them. */
export const words = (line: string): string[] => line.split(/([A-Za-z0-9][\w.\-/]*[\w]|[A-Za-z0-9])/);

export function linked(line: string, nouns: Nouns): ReactNode[] {
  return words(line).map((word, i) => {
    const service = nouns.services.has(word) ? word : nouns.instances.get(word);
    const queue = nouns.queues.get(word);
    if (queue !== undefined && !nouns.services.has(word)) {
      return (
        <Link
          key={i}
          className="mono"
          to="/queues/$queueSpace/$queueName"
          params={{ queueSpace: queue, queueName: word }}
        >
          {word}
        </Link>
      );
    }
    if (service === undefined) return word;
    return (
      <Link key={i} to="/services" search={service === word ? { service } : { service, instance: word }}>
        {word}
      </Link>
    );
  });
}

export const HappeningLine = memo(function HappeningLine({ row, nouns }: { row: HappeningRow; nouns: Nouns }) {
  return (
    <li>
      <span className="meta">
        <Time at={row.at_us} />
      </span>
      <Glyph kind={glyphOf(row)} />
      <span className="cut" title={row.line}>
        {linked(row.line, nouns)}
      </span>
    </li>
  );
});
