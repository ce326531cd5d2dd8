// Which colour a service has, for every part that names one. Slots are given by the server in order of first attach.

import { useSyncExternalStore } from "react";
import type { Service } from "../api/types";
import { feed } from "./feed";
import { Store } from "./store";

const slots = new Store<ReadonlyMap<string, number>>(new Map());
let stop: (() => void) | null = null;

function refresh(services: ReadonlyMap<string, Service>): void {
  const known = slots.get();
  const next = new Map(known);
  for (const s of services.values()) next.set(s.name, s.slot);
  if (next.size !== known.size || [...next].some(([name, slot]) => known.get(name) !== slot)) slots.set(next);
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
