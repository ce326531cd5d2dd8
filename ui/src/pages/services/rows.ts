// Services and, under those that are open, their instances, as rows of one table. Pure.

import type { Instance, Service, Source, State, Tone } from "../../api/types";

export interface ServiceRow {
  key: string;
  service: Service;
  /** Null in the service's own row. */
  instance: Instance | null;
}

export const serviceKey = (s: Pick<Service, "name">): string => s.name;
export const instanceKey = (s: Pick<Service, "name">, i: Pick<Instance, "id">): string => `${s.name} ${i.id}`;

/** Instances stand under the chosen service, and under one that has several of which not all are well. */
export function isOpen(s: Service, chosen: string | undefined): boolean {
  if (s.instances.length === 0) return false;
  return s.name === chosen || (s.instances.length > 1 && s.instances.some((i) => i.state === "failing"));
}

export function matches(s: Service, text: string): boolean {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  const hay = [
    s.name,
    s.state,
    s.reason,
    s.route ?? "",
    s.language ?? "",
    ...s.sources,
    ...s.instances.map((i) => i.name),
  ]
    .join(" ")
    .toLowerCase();
  return wanted.every((w) => hay.includes(w));
}

const SOURCES: Record<Source, string> = {
  built_in: "built in",
  supervised: "supervised",
  amqp: "amqp",
  tunnel: "tunnel",
  telemetry: "telemetry",
};
export function how(s: Pick<Service, "sources">): string {
  if (s.sources.length === 1 && s.sources[0] === "telemetry") return "telemetry only";
  return s.sources
    .filter((source) => source !== "telemetry")
    .map((source) => SOURCES[source])
    .join(", ");
}

export const sentence = (text: string): string => (text ? text.charAt(0).toUpperCase() + text.slice(1) : text);
export const stateWords = (x: { state: State; reason: string }): string => sentence(x.reason || x.state);

/** Buttons that make sense for a state. */
export function commandsFor(states: readonly State[]): ("start" | "stop" | "restart")[] {
  const running = states.some((s) => s !== "stopped" && s !== "detached");
  return running ? ["restart", "stop"] : ["start"];
}

export const restartTone = (n: number): Tone => (n > 0 ? "err" : "normal");
