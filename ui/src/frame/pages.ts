// The pages of this version: navigation, bottom bar, palette and the `g` keys read the same list.

import type { IconName } from "../parts/Icon";

export interface PageEntry {
  to: "/" | "/traces" | "/logs" | "/metrics" | "/services" | "/queues" | "/changes" | "/access" | "/settings";
  name: string;
  icon: IconName;
  /** After `g`. */
  key?: string;
}
export const GROUPS: { name: string | null; pages: PageEntry[] }[] = [
  { name: null, pages: [{ to: "/", name: "Overview", icon: "overview", key: "o" }] },
  {
    name: "Observe",
    pages: [
      { to: "/traces", name: "Traces", icon: "traces", key: "t" },
      { to: "/logs", name: "Logs", icon: "logs", key: "l" },
      { to: "/metrics", name: "Metrics", icon: "metrics", key: "m" },
    ],
  },
  {
    name: "Run",
    pages: [
      { to: "/services", name: "Services", icon: "services", key: "r" },
      { to: "/queues", name: "Queues", icon: "queues", key: "b" },
    ],
  },
  {
    name: "Space",
    pages: [
      { to: "/changes", name: "Changes", icon: "changes" },
      { to: "/access", name: "Access", icon: "access" },
      { to: "/settings", name: "Settings", icon: "settings" },
    ],
  },
];
export const PAGES: PageEntry[] = GROUPS.flatMap((group) => group.pages);
