// The live map: nodes and edges at their places, beads in the caller's colour. Swaps on the beat; hovering dims what is not on a
// way through the node.

import { memo, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { MapEdge, TrafficMap } from "../../api/types";
import { useNowUs } from "../../live/hooks";
import { durationShort, plural, rateGlued, share } from "../../parts/format";
import { slotColour } from "../../parts/marks";
import { useLeaving } from "./leaving";
import { MapNodeView, nodeWords } from "./MapNodeView";
import { beadGap, edgeWidth, type Label, lengthOf, placeLabels, type Routed, routeAll } from "./mapEdges";
import { pathsThrough, type ShownMap, type ShownNode } from "./mapGroups";
import { type Box, type Laid, layOut, type Places, placeAll, placeMore } from "./mapLayout";

/** Traffic unseen for this long is drawn dashed. */
const QUIET_US = 60e6;
const CHAR_PX = 5.9;
/** New shapes of the graph may still move everything for so long after the map first had an edge. */
const SETTLE_MS = 45_000;

interface Memory {
  places: Places;
  since: number | null;
  known: number;
}
const memories = new Map<string, Memory>();

/** Places by space, kept while the page is: coming back finds the map as it was. */
function usePlaces(space: string, map: TrafficMap, held: boolean): Places {
  return useMemo(() => {
    const memory = memories.get(space);
    const structure = map.nodes.length + map.edges.length;
    const young = memory?.since == null || performance.now() - memory.since < SETTLE_MS;
    const grew = !memory || structure > memory.known;
    const places =
      !memory || (grew && young && !held)
        ? placeAll(map.nodes, map.edges)
        : placeMore(memory.places, map.nodes, map.edges);
    const since = memory?.since ?? (map.edges.length > 0 ? performance.now() : null);
    memories.set(space, { places, since, known: Math.max(structure, memory?.known ?? 0) });
    return places;
  }, [space, map, held]);
}

interface MapViewProps {
  space: string;
  map: ShownMap;
  selected: string | undefined;
  onOpen: (id: string) => void;
}

export function MapView({ space, map, selected, onOpen }: MapViewProps) {
  const host = useRef<HTMLDivElement>(null);
  const size = useSize(host);
  const [hovered, setHovered] = useState<string | null>(null);
  const places = usePlaces(space, map, hovered !== null);
  const laid = useMemo(() => layOut(places, map.nodes, size.width, size.height), [places, map.nodes, size]);
  // Too narrow for the columns: the whole map is drawn smaller.
  const scale = Math.min(1, size.width / laid.width);
  const shown = { width: laid.width * scale, height: laid.height * scale };
  const routed = useMemo(() => routeAll(map.edges, laid), [map.edges, laid]);
  const labels = useMemo(() => placeLabels(routed, labelWidths, laid), [routed, laid]);
  const { edges, nodes } = useShapes(space, map, laid, routed, labels);
  // The pointer does not leave what vanishes under it.
  const over = hovered !== null && laid.boxes.has(hovered) ? hovered : null;
  const lit = useMemo(() => (over ? pathsThrough(over, map.edges) : null), [over, map.edges]);
  const slots = new Map(nodes.map(({ node }) => [node.id, node.slot]));
  const faint = (...ids: string[]) => lit !== null && !ids.every((id) => lit.has(id));
  return (
    <div className="map" ref={host}>
      {size.width > 0 ? (
        <svg
          width={shown.width}
          height={shown.height}
          viewBox={`0 0 ${laid.width} ${laid.height}`}
          role="group"
          aria-label={`Live topology, ${plural(map.nodes.length, "node")}`}
        >
          {laid.columns.map((c) => (
            <g key={c.name}>
              <text className="map-head" x={c.x} y={16}>
                {c.name}
              </text>
              <path className="map-guide" d={`M${Math.round(c.x) - 0.5} 24V${laid.height - 12}`} />
            </g>
          ))}
          {edges.map(({ key, routed: r, label, leaving }) => (
            <EdgeView
              key={key}
              routed={r}
              label={label}
              slot={slots.get(r.edge.from) ?? null}
              faint={faint(r.edge.from, r.edge.to)}
              leaving={leaving}
            />
          ))}
          {nodes.map(({ node: n, box, leaving }) => (
            <MapNodeView
              key={n.id}
              node={n}
              box={box}
              selected={n.id === selected}
              faint={faint(n.id)}
              onHover={setHovered}
              onOpen={onOpen}
              leaving={leaving}
              words={nodeWords(n)}
            />
          ))}
        </svg>
      ) : null}
    </div>
  );
}

interface ShownEdge {
  key: string;
  routed: Routed;
  label: Label | null;
  leaving: boolean;
}
interface PlacedNode {
  node: ShownNode;
  box: Box;
  leaving: boolean;
}

/** What is drawn: what is there, then what has just left, where it last stood. */
function useShapes(
  space: string,
  map: ShownMap,
  laid: Laid,
  routed: readonly Routed[],
  labels: readonly (Label | null)[],
) {
  const nodes = useMemo(() => {
    const placed = new Map<string, PlacedNode>();
    for (const node of map.nodes) {
      const box = laid.boxes.get(node.id);
      if (box) placed.set(node.id, { node, box, leaving: false });
    }
    return placed;
  }, [map.nodes, laid]);
  const edges = useMemo(
    () =>
      new Map(
        routed.map((r, i): [string, ShownEdge] => {
          const key = `${r.edge.from} ${r.edge.to}`;
          return [key, { key, routed: r, label: labels[i] ?? null, leaving: false }];
        }),
      ),
    [routed, labels],
  );
  const left = <T,>(things: T[]): T[] => things.map((thing) => ({ ...thing, leaving: true }));
  return {
    nodes: [...nodes.values(), ...left(useLeaving(space, nodes))],
    edges: [...edges.values(), ...left(useLeaving(space, edges))],
  };
}

function useSize(host: React.RefObject<HTMLDivElement | null>): { width: number; height: number } {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const node = host.current;
    if (!node) return;
    const measure = () =>
      setSize((s) =>
        s.width === node.clientWidth && s.height === node.clientHeight
          ? s
          : { width: node.clientWidth, height: node.clientHeight },
      );
    const observer = new ResizeObserver(measure);
    observer.observe(node);
    measure();
    return () => observer.disconnect();
  }, [host]);
  return size;
}

function labelTexts(e: MapEdge): { text: string; tone: string }[] {
  const out = [{ text: rateGlued(e.rate), tone: e.tone === "warn" ? "var(--warn)" : "var(--text-2)" }];
  if (e.error_share > 0)
    out.push({ text: share(e.error_share), tone: e.tone === "err" ? "var(--err)" : "var(--text-2)" });
  if (e.p95_ns) out.push({ text: durationShort(e.p95_ns), tone: e.tone === "warn" ? "var(--warn)" : "var(--text-2)" });
  return out;
}
/** Everything first, then without the duration, then the rate alone. */
function labelWidths(e: MapEdge): number[] {
  const texts = labelTexts(e).map((t) => t.text.length * CHAR_PX);
  return texts.map((_, i) => texts.slice(0, texts.length - i).reduce((a, b) => a + b + 8, 4));
}

interface EdgeViewProps {
  routed: Routed;
  label: Label | null;
  slot: number | null;
  faint: boolean;
  leaving: boolean;
}

const EdgeView = memo(function EdgeView({ routed, label, slot, faint, leaving }: EdgeViewProps) {
  const { edge, path } = routed;
  const now = useNowUs();
  const quiet = now - edge.last_us > QUIET_US;
  const width = edgeWidth(edge.rate);
  const gap = Math.min(beadGap(edge.rate), lengthOf(routed.points) * 0.8);
  const failing = edge.tone === "err" && edge.error_share > 0;
  // One step a beat: a bead moves by a part of the gap that grows with the rate.
  const step = Math.round(now / 1e6) * Math.max(4, gap * (edge.rate >= 10 ? 0.5 : 0.34));
  const words = labelTexts(edge);
  return (
    <g className={`map-edge${faint ? " faint" : ""}${leaving ? " leaving" : ""}`}>
      <path className="line" d={path} strokeWidth={failing ? 5.5 : width} strokeDasharray={quiet ? "3 4" : undefined} />
      {failing ? <path className="core" d={path} /> : null}
      {quiet || edge.rate <= 0 ? null : (
        <path
          className="beads"
          d={path}
          stroke={slotColour(slot)}
          strokeWidth={Math.max(3, width)}
          strokeDasharray={`.1 ${gap}`}
          strokeDashoffset={-step}
        />
      )}
      {label && !quiet ? (
        <>
          <rect x={label.x - label.w / 2} y={label.y - 9} width={label.w} height={17} rx={3} fill="var(--bg-0)" />
          <text x={label.x} y={label.y + 3.5} textAnchor="middle" fontSize="11">
            {words.slice(0, label.parts).map((w, i) => (
              <tspan key={w.text} fill={w.tone} dx={i === 0 ? 0 : 7}>
                {w.text}
              </tspan>
            ))}
          </text>
        </>
      ) : null}
    </g>
  );
});
