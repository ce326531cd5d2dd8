// What is worth saying aloud: changes of state, at most one message in five seconds. Pure.

import type { Service, State } from "../api/types";

export const QUIET_MS = 5000;

export class Announcements {
  private known: Map<string, State> | null = null;
  private waiting: string[] = [];
  private said = Number.NEGATIVE_INFINITY;

  /** Takes the services as they are now; returns what to say, or null. */
  next(services: readonly Pick<Service, "name" | "state">[], now: number): string | null {
    const states = new Map(services.map((s) => [s.name, s.state]));
    if (this.known) {
      for (const [name, state] of states)
        if (this.known.get(name) !== state && this.known.has(name)) this.add(name, `${name} is ${state}`);
      for (const name of states.keys()) if (!this.known.has(name)) this.add(name, `${name} attached`);
      for (const name of this.known.keys()) if (!states.has(name)) this.add(name, `${name} is gone`);
    }
    this.known = states;
    if (this.waiting.length === 0 || now - this.said < QUIET_MS) return null;
    this.said = now;
    const text = this.waiting.join(", ");
    this.waiting = [];
    return text;
  }

  /** The newest word on a service replaces an older one that was not said yet. */
  private add(name: string, text: string): void {
    this.waiting = this.waiting.filter((w) => !w.startsWith(`${name} `));
    this.waiting.push(text);
  }
}
