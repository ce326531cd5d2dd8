// Which colour a service has, for every part that names one. Slots are given by the server; a service that left keeps its colour here
// while there is room, for what is still told of it.

import { useSyncExternalStore } from "react";
import type { Service } from "../api/types";
import { feed } from "./feed";
import { Store } from "./store";

const slots = new Store<ReadonlyMap<string, number>>(new Map());
const GONE_KEPT = 1000;
let stop: (() => void) | null = null;

type Slotted = Pick<Service, "name" | "slot">;

/** What is known after a look at the services of now; the same map if nothing changed. */
export function slotsAfter(
  known: ReadonlyMap<string, number>,
  services: Iterable<Slotted>,
  goneKept = GONE_KEPT,
): ReadonlyMap<string, number> {
  const here = new Map(Array.from(services, (s) => [s.name, s.slot] as const));
  const gone = [...known].filter(([name]) => !here.has(name));
  if (gone.length <= goneKept && [...here].every(([name, slot]) => known.get(name) === slot)) return known;
  // Those that are here stand last, so that the first of the gone are those that left first.
  return new Map([...gone.slice(Math.max(0, gone.length - goneKept)), ...here]);
}

function refresh(services: ReadonlyMap<string, Service>): void {
  const known = slots.get();
  const next = slotsAfter(known, services.values());
  if (next !== known) slots.set(next);
}
function start(): void {
  if (stop) return;
  const source = feed.state<Service>({ channel: "services" });
  stop = source.subscribe(() => refresh(source.get().values));
  refresh(source.get().values);
}

/** For canvas parts; null while unknown. reactor itself is slot 1. */
export function slotOf(name: string): number | null {
  start();
  return slots.get().get(name) ?? (name === "reactor" || name === "gateway" ? 1 : null);
}
export function onSlots(listener: () => void): () => void {
  start();
  return slots.subscribe(listener);
}
export const useSlot = (name: string): number | null => useSyncExternalStore(onSlots, () => slotOf(name));
