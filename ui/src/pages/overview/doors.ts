// What the doors' addresses mean for a command line. Pure.

import type { Door, Variable } from "../../api/types";

const ORDER = ["http", "https", "ingress", "control", "bus", "amqp", "amqps", "otlp_grpc", "otlp_http"];

export function doorsByName(values: ReadonlyMap<string, Door>): Door[] {
  const at = (d: Door) => {
    const i = ORDER.indexOf(d.name);
    return i < 0 ? ORDER.length : i;
  };
  return [...values.values()].sort((a, b) => Number(a.address === null) - Number(b.address === null) || at(a) - at(b));
}

export function portOf(doors: readonly Door[], name: string): number | null {
  const address = doors.find((d) => d.name === name)?.address;
  const port = address ? /:(\d+)$/.exec((address.split(",")[0] as string).trim())?.[1] : undefined;
  return port === undefined ? null : Number(port);
}

/** Where HTTP comes in: port 80 needs no number, the ingress is there without privilege. */
export function publicUrl(doors: readonly Door[]): string {
  const port = portOf(doors, "http") ?? portOf(doors, "ingress");
  return port === null || port === 80 ? "http://localhost" : `http://localhost:${port}`;
}

/** Not merely absent by choice or by version: it should listen. */
export const served = (d: Door): boolean => d.address !== null || !/^(off|not served)/.test(d.state);

/** Where a snippet goes by itself. */
const STANDARD = "amqp://guest:guest@localhost:5672";

/** A snippet dials the standard port as guest; anything else its command must say. */
export function runCommand(run: string, variables: readonly Variable[]): string {
  const amqp = variables.find((v) => v.name === "AMQP_URL");
  return amqp === undefined || amqp.value === STANDARD ? run : `AMQP_URL=${amqp.value} ${run}`;
}
