// The range a new tab begins with.

import { Store } from "../live/store";

const KEY = "reactor.range";
export type DefaultLength = "5m" | "15m" | "1h";
const known: readonly DefaultLength[] = ["5m", "15m", "1h"];

function stored(): DefaultLength {
  try {
    return known.find((k) => k === localStorage.getItem(KEY)) ?? "15m";
  } catch {
    return "15m";
  }
}
const store = new Store<DefaultLength>(typeof localStorage === "undefined" ? "15m" : stored());

export const defaultLength = {
  store,
  choose(next: DefaultLength): void {
    store.set(next);
    localStorage.setItem(KEY, next);
  },
};
