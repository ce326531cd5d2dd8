// One node of the map: a service with its rod, name, instances and three fixed values; a queue as a channel of rods; what is
// outside as a dashed pill, blocks as plain rectangles.

import { memo } from "react";
import type { State } from "../../api/types";
import { channelFill, channelTone } from "../../parts/depth";
import { countShort, cutEnd, cutMiddle, durationShort, rateGlued, share } from "../../parts/format";
import { instanceWords, slotColour } from "../../parts/marks";
import type { ShownNode } from "./mapGroups";
import type { Box } from "./mapLayout";

const NAME_PX = 7.4;
const RODS_MAX = 8;
const CHANNEL_RODS = 24;

/** The third of a service's places: its p95, or how many are up when some are not. */
function third(n: ShownNode): { text: string; tone: string } {
  const down = n.instances.filter((s) => s !== "ready" && s !== "degraded").length;
  if (n.state === "failing" && down > 0)
    return { text: `${n.instances.length - down} of ${n.instances.length} up`, tone: "err" };
  return { text: n.p95_ns === null ? "" : durationShort(n.p95_ns), tone: n.tone === "warn" ? "warn" : "text-3" };
}

function outsideFacts(n: ShownNode): string {
  const facts = [n.rate === null ? null : rateGlued(n.rate), n.p95_ns === null ? null : durationShort(n.p95_ns)];
  return [n.kind === "outside" ? "outside" : null, ...facts].filter(Boolean).join(", ");
}
const waitWords = (wait: number | null): string => (wait === null ? "" : `, wait ${durationShort(wait)}`);

/** The node in words, for the accessible tree: what is seen first, then what its shape and colour say. */
export function nodeWords(n: ShownNode): string {
  const seen: string[] = [n.name];
  if (n.queue) seen.push(`${countShort(n.queue.ready)} ready${waitWords(n.queue.wait_ns)}`);
  else if (n.kind === "service" || n.kind === "gateway") {
    if (n.members) seen.push(String(n.members));
    seen.push(
      n.rate === null ? "" : rateGlued(n.rate),
      n.error_share === null ? "" : share(n.error_share),
      third(n).text,
    );
  } else seen.push(outsideFacts(n));
  const said = [
    n.kind === "gateway" ? null : n.kind,
    n.state,
    n.instances.length > 0 ? instanceWords(n.instances) : null,
  ];
  return [seen.filter(Boolean).join(" "), ...said.filter(Boolean)].join(", ");
}

interface MapNodeViewProps {
  node: ShownNode;
  box: Box;
  selected: boolean;
  faint: boolean;
  words: string;
  onHover: (id: string | null) => void;
  onOpen: (id: string) => void;
  /** It is no longer there: to be seen, not to be reached. */
  leaving: boolean;
}

export const MapNodeView = memo(function MapNodeView({
  node,
  box,
  selected,
  faint,
  words,
  onHover,
  onOpen,
  leaving,
}: MapNodeViewProps) {
  const state = node.state === "failing" || node.state === "degraded" ? node.state : "";
  const classes = ["map-node", node.kind, state, selected && "selected", faint && "faint", leaving && "leaving"]
    .filter(Boolean)
    .join(" ");
  return (
    <g
      className={classes}
      style={{ transform: `translate(${box.x}px, ${box.y}px)` }}
      onPointerEnter={() => onHover(node.id)}
      onPointerLeave={() => onHover(null)}
    >
      <g aria-hidden="true">
        {node.kind === "queue" ? (
          <QueueShape node={node} w={box.w} />
        ) : node.kind === "service" || node.kind === "gateway" ? (
          <ServiceShape node={node} w={box.w} />
        ) : (
          <OutsideShape node={node} w={box.w} />
        )}
      </g>
      {leaving ? null : (
        <rect
          className="hit"
          width={box.w}
          height={box.h}
          role="button"
          tabIndex={0}
          aria-label={words}
          onFocus={() => onHover(node.id)}
          onBlur={() => onHover(null)}
          onClick={() => onOpen(node.id)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" && event.key !== " ") return;
            event.preventDefault();
            onOpen(node.id);
          }}
        />
      )}
    </g>
  );
});

function ServiceShape({ node, w }: { node: ShownNode; w: number }) {
  const group = node.id.startsWith("group:");
  const rods = group ? [] : node.instances.slice(0, RODS_MAX);
  const room = w - 30 - (group ? 18 : rods.length * 5);
  const last = third(node);
  const errors = node.error_share === null ? "" : share(node.error_share);
  return (
    <>
      <rect className="frame" width={w} height="48" rx="6" />
      <rect x="8" y="9" width="3" height="12" rx="1" fill={slotColour(node.slot)} />
      <text x="18" y="19.5" fontSize="13" fontWeight="600" fill="var(--text-1)">
        {cutEnd(node.name, Math.floor(room / NAME_PX))}
      </text>
      {rods.map((state, i) => (
        <InstanceRod key={i} state={state} x={w - 12 - (rods.length - i) * 5} />
      ))}
      {group ? (
        <text x={w - 10} y="19.5" textAnchor="end" fontSize="11" fill="var(--text-3)">
          {node.members}
        </text>
      ) : null}
      <text x="8" y="38" fontSize="11" fill="var(--text-2)">
        {node.rate === null ? "" : rateGlued(node.rate)}
      </text>
      <text x="54" y="38" fontSize="11" fill={node.tone === "err" && node.error_share ? "var(--err)" : "var(--text-3)"}>
        {errors}
      </text>
      <text x={w - 10} y="38" textAnchor="end" fontSize="11" fill={`var(--${last.tone})`}>
        {last.text}
      </text>
    </>
  );
}

function InstanceRod({ state, x }: { state: State; x: number }) {
  if (state === "failing") return <rect x={x} y="15" width="3" height="5" rx="1" fill="var(--err-fill)" />;
  if (state === "starting" || state === "stopping") {
    return (
      <path
        d={`M${x + 1.5} 9v2M${x + 1.5} 12v2M${x + 1.5} 15v2M${x + 1.5} 18v2`}
        stroke="var(--warn-fill)"
        strokeWidth="3"
      />
    );
  }
  if (state === "stopped" || state === "detached") {
    return <rect x={x + 0.5} y="9.5" width="2" height="10" rx="1" fill="none" stroke="var(--line-3)" />;
  }
  return (
    <rect x={x} y="9" width="3" height="11" rx="1" fill={state === "degraded" ? "var(--warn-fill)" : "var(--ok)"} />
  );
}

function QueueShape({ node, w }: { node: ShownNode; w: number }) {
  const queue = node.queue ?? { ready: 0, unacked: 0, limit: null, wait_ns: null };
  const step = (w - 16) / CHANNEL_RODS;
  const fill = channelFill(queue.ready, queue.limit, CHANNEL_RODS);
  const colour = channelTone(queue.ready, queue.limit, node.tone);
  const tone = node.tone === "normal" ? "text-3" : node.tone;
  return (
    <>
      <path className="post" d={`M0 16v16M${w} 16v16`} />
      <rect className="ground" x="2" y="-4" width={w - 4} height="56" />
      <text className="mono" x="8" y="9" fontSize="11.5" fontWeight="500" fill="var(--text-1)">
        {cutMiddle(node.name, Math.floor((w - 12) / 7))}
      </text>
      {Array.from({ length: CHANNEL_RODS }, (_, i) => (
        <rect
          key={i}
          x={8 + i * step}
          y="18"
          width={step - 2}
          height="12"
          rx="1"
          fill={i < fill ? colour : "var(--line-1)"}
        />
      ))}
      <text x="8" y="46" fontSize="11" fill="var(--text-3)">
        <tspan fill={`var(--${tone})`}>{`${countShort(queue.ready)} ready`}</tspan>
        {waitWords(queue.wait_ns)}
      </text>
    </>
  );
}

function OutsideShape({ node, w }: { node: ShownNode; w: number }) {
  const block = node.kind === "block";
  const x = block ? 10 : 18;
  return (
    <>
      <rect className="plain" width={w} height="48" rx={block ? 6 : 24} strokeDasharray={block ? undefined : "3 3"} />
      <text x={x} y="20" fontSize="12" fontWeight="500" fill="var(--text-2)">
        {cutMiddle(node.name, Math.floor((w - x - 8) / 6.6))}
      </text>
      <text x={x} y="37" fontSize="11" fill="var(--text-3)">
        {outsideFacts(node)}
      </text>
    </>
  );
}
