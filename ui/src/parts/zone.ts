// Local zone by default, UTC by toggle; kept locally.

import { useSyncExternalStore } from "react";
import { Store } from "../live/store";
import type { Zone } from "./format";

const KEY = "reactor.zone";
function stored(): Zone {
  try {
    return localStorage.getItem(KEY) === "utc" ? "utc" : "local";
  } catch {
    return "local";
  }
}

export const zone = new Store<Zone>(typeof localStorage === "undefined" ? "local" : stored());

export function chooseZone(next: Zone): void {
  zone.set(next);
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}
export const useZone = (): Zone => useSyncExternalStore(zone.subscribe, zone.get);
