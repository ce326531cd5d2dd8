// The map on narrow screens: the same graph as an indented tree, 44 px rows, two lines of numbers at the right.

import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import type { MapNode, TrafficMap } from "../../api/types";
import { channelFill, channelTone } from "../../parts/depth";
import { countShort, durationShort, rateGlued, share } from "../../parts/format";
import { MiddleCut } from "../../parts/MiddleCut";
import { Rods, ServiceName } from "../../parts/marks";
import { Empty } from "../../parts/Region";
import { type TreeRow, treeOf } from "./mapTree";

const ROW = 44;
const INDENT = 22;
const LEFT = 12;
const CHANNEL = 18;

export function TrafficTree({ map }: { map: TrafficMap }) {
  const rows = useMemo(() => treeOf(map), [map]);
  if (rows.length === 0) return <Empty title="No traffic in the last 10 s" />;
  return (
    <div className="tree">
      <svg className="tree-rails" width="100%" height={rows.length * ROW} aria-hidden="true">
        <path d={rails(rows)} />
      </svg>
      {rows.map(({ node, depth }) => (
        <div key={node.id} className="tree-row" style={{ paddingLeft: LEFT + Math.min(depth, 6) * INDENT }}>
          <span className="tree-name">
            <Name node={node} />
          </span>
          <Figures node={node} />
        </div>
      ))}
    </div>
  );
}

/** From under each parent down and into its children, with corners of 8 px. */
function rails(rows: readonly TreeRow[]): string {
  let path = "";
  rows.forEach((row, i) => {
    if (row.parent < 0) return;
    const x = LEFT + 1.5 + (Math.min(row.depth, 6) - 1) * INDENT;
    const y = i * ROW + ROW / 2;
    path += `M${x} ${row.parent * ROW + 32}V${y - 8}Q${x} ${y} ${x + 8} ${y}h6`;
  });
  return path;
}

function Name({ node }: { node: MapNode }) {
  if (node.kind === "queue") {
    const queue = node.queue ?? { ready: 0, limit: null };
    const fill = channelFill(queue.ready, queue.limit, CHANNEL);
    const colour = channelTone(queue.ready, queue.limit, node.tone);
    return (
      <>
        <Link
          className="cut"
          to="/queues/$queueSpace/$queueName"
          params={{ queueSpace: node.id.slice(6).split(" ")[0] as string, queueName: node.name }}
        >
          <MiddleCut text={node.name} />
        </Link>
        <span className="rods channel" aria-hidden="true">
          {Array.from({ length: CHANNEL }, (_, i) => (
            <i key={i} style={{ background: i < fill ? colour : "var(--line-1)" }} />
          ))}
        </span>
      </>
    );
  }
  if (node.kind === "service" || node.kind === "gateway") {
    return (
      <>
        <ServiceName name={node.name} slot={node.slot} />
        <Rods states={node.instances} />
      </>
    );
  }
  return <span className="dim">{node.name}</span>;
}

function Figures({ node }: { node: MapNode }) {
  if (node.queue) {
    const tone = node.tone === "normal" ? undefined : node.tone;
    return (
      <span>
        <span className={tone}>{countShort(node.queue.ready)} ready</span>
        <br />
        <span className={tone ?? "dim"}>{node.queue.wait_ns === null ? "" : durationShort(node.queue.wait_ns)}</span>
      </span>
    );
  }
  const up = node.instances.filter((s) => s === "ready" || s === "degraded").length;
  const down = node.state === "failing" && up < node.instances.length;
  return (
    <span>
      {node.rate === null ? "" : rateGlued(node.rate)}{" "}
      <span className={node.tone === "err" && node.error_share ? "err" : undefined}>
        {node.error_share === null ? "" : share(node.error_share)}
      </span>
      <br />
      {down ? (
        <span className="err">
          {up} of {node.instances.length} up
        </span>
      ) : (
        <span className={node.tone === "warn" ? "warn" : "dim"}>
          {node.p95_ns === null ? "" : durationShort(node.p95_ns)}
        </span>
      )}
    </span>
  );
}
