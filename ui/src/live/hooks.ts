// The live feed for components.

import { useEffect, useMemo, useSyncExternalStore } from "react";
import type { LiveChannel, MapEdge, MapNode, Micros, Overview, Service, TrafficMap } from "../api/types";
import { feed, type RowsFeed, type RowsView, type StateView, serverNowUs } from "./feed";
import type { Link, RowOptions, Spec } from "./messages";
import { paused } from "./pause";
import { Store } from "./store";

export function useStore<T>(store: { get: () => T; subscribe: (listener: () => void) => () => void }): T {
  return useSyncExternalStore(store.subscribe, store.get);
}

/** A state channel's map. It changes once a second at most, and not at all while paused. */
export function useChannel<T>(channel: LiveChannel, spec?: Omit<Spec, "channel">): StateView<T> {
  const key = JSON.stringify(spec ?? {});
  // biome-ignore lint/correctness/useExhaustiveDependencies: the specification is compared by value
  const source = useMemo(() => feed.state<T>({ channel, ...spec }), [channel, key]);
  return useStore(source);
}

/** A stream's ring. Rows do not pass through component state: draw them from `peek` when the view changes. */
export function useRows<T>(spec: Spec, options?: RowOptions): [RowsFeed<T>, RowsView] {
  const key = JSON.stringify([spec, options]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the specification is compared by value
  const source = useMemo(() => feed.rows<T>(spec, options), [key]);
  return [source, useStore(source)];
}

export const useLink = (): Link => useStore(feed.link);
export const usePaused = () => useStore(paused);
export const useFresh = () => useStore(paused.fresh);

const byName = <T extends { name: string }>(a: T, b: T) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);

export interface Listed<T> {
  list: T[];
  ready: boolean;
}
function useList<T extends { name: string; space: string }>(channel: LiveChannel, space: string | null): Listed<T> {
  const { values, ready } = useChannel<T>(channel);
  const list = useMemo(() => {
    const all = [...values.values()];
    return (space === null ? all : all.filter((x) => x.space === space)).sort(byName);
  }, [values, space]);
  return { list, ready };
}

/** Services of a space: the gateway first, then by name. */
export function useServices(space: string | null): Listed<Service> {
  const { list, ready } = useList<Service>("services", space);
  const ordered = useMemo(
    () => [...list.filter((s) => s.name === "gateway"), ...list.filter((s) => s.name !== "gateway")],
    [list],
  );
  return { list: ordered, ready };
}

/** Fields of the overview arrive one by one: what has not come is absent. */
export function useOverview(): Partial<Overview> {
  const { values } = useChannel<unknown>("overview");
  return useMemo(() => Object.fromEntries(values) as Partial<Overview>, [values]);
}
/** The map's nodes and edges, each its own key on the feed. */
export function useMap(): { map: TrafficMap; ready: boolean } {
  const { values, ready } = useChannel<MapNode | MapEdge>("map");
  return useMemo(() => {
    const map: TrafficMap = { nodes: [], edges: [] };
    for (const [key, value] of values) {
      if (key.startsWith("node ")) map.nodes.push(value as MapNode);
      else if (key.startsWith("edge ")) map.edges.push(value as MapEdge);
    }
    return { map, ready };
  }, [values, ready]);
}

const beat = new Store<Micros>(serverNowUs());
let ticking = 0;
let timer: ReturnType<typeof setInterval> | null = null;
const now = {
  get: beat.get,
  subscribe: (listener: () => void) => {
    ticking += 1;
    timer ??= setInterval(() => {
      if (!paused.freezesState() && !document.hidden) beat.set(serverNowUs());
    }, 1000);
    const stop = beat.subscribe(listener);
    return () => {
      stop();
      ticking -= 1;
      if (ticking === 0 && timer) {
        clearInterval(timer);
        timer = null;
      }
    };
  },
};
/** The server's clock on the beat; stands still while paused. */
export const useNowUs = (): Micros => useStore(now);

/** Rows that passed while a list held still are counted in the pill. */
export function useFreshCount(count: number): void {
  useEffect(() => {
    paused.fresh.set(count);
    return () => paused.fresh.set(0);
  }, [count]);
}
