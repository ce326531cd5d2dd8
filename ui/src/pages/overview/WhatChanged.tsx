// The newest happenings of the space, eleven lines, every noun a link.

import { Link } from "@tanstack/react-router";
import { useHappenings } from "../../live/happenings";
import { useNouns } from "../../live/nouns";
import { count } from "../../parts/format";
import { HappeningLine } from "../../parts/Happening";
import { Empty, Outlines, Region } from "../../parts/Region";

const LINES = 11;

export function WhatChanged() {
  const { rows, total, begun } = useHappenings(LINES);
  const nouns = useNouns();
  return (
    <Region
      title="What changed"
      count={begun ? count(total) : null}
      tools={<Link to="/changes">All changes</Link>}
      className="what-changed"
      scroll
    >
      {!begun ? (
        <Outlines rows={4} />
      ) : rows.length === 0 ? (
        <Empty title="Nothing has happened yet">Attachments, restarts, refusals and changes are listed here.</Empty>
      ) : (
        <ol className="changed">
          {rows.map((row) => (
            <HappeningLine key={row.seq} row={row} nouns={nouns} />
          ))}
        </ol>
      )}
    </Region>
  );
}
