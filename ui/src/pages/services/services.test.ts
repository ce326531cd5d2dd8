import { expect, test } from "vitest";
import type { Happening, Service } from "../../api/types";
import { commandsFor, how, isOpen, matches, stateWords } from "./rows";
import { axisSteps, startupOf } from "./startRun";

const service = (more: Partial<Service>): Service =>
  ({
    name: "worker",
    state: "ready",
    reason: "",
    sources: ["supervised"],
    route: null,
    language: "rust",
    instances: [],
    ...more,
  }) as Service;
const at = (seconds: number, name: string, service: string, line: string): Happening => ({
  seq: seconds,
  at_us: 1e12 + seconds * 1e6,
  name,
  severity: "info",
  space: "/",
  service,
  queue: null,
  line,
});

test("how a service is here, in words", () => {
  expect(how({ sources: ["built_in"] })).toBe("built in");
  expect(how({ sources: ["supervised", "amqp", "telemetry"] })).toBe("supervised, amqp");
  expect(how({ sources: ["telemetry"] })).toBe("telemetry only");
});

test("the state is its reason when it has one", () => {
  expect(stateWords({ state: "ready", reason: "" })).toBe("Ready");
  expect(stateWords({ state: "failing", reason: "exited 137, next start in 8 s" })).toBe(
    "Exited 137, next start in 8 s",
  );
});

test("start is offered for what stands, restart and stop for what runs", () => {
  expect(commandsFor(["stopped"])).toEqual(["start"]);
  expect(commandsFor(["ready", "stopped"])).toEqual(["restart", "stop"]);
  expect(commandsFor([])).toEqual(["start"]);
});

test("the filter looks at names, states, reasons and instances", () => {
  const s = service({ reason: "1 of 2 up", instances: [{ name: "worker-2" }] as Service["instances"] });
  expect(matches(s, "work")).toBe(true);
  expect(matches(s, "worker-2 of")).toBe(true);
  expect(matches(s, "orders")).toBe(false);
});

test("instances stand under the chosen service and under one that is partly down", () => {
  const instances = [{ state: "ready" }, { state: "failing" }] as Service["instances"];
  expect(isOpen(service({ instances }), undefined)).toBe(true);
  expect(isOpen(service({ instances: instances.slice(0, 1) }), undefined)).toBe(false);
  expect(isOpen(service({ instances: instances.slice(0, 1) }), "worker")).toBe(true);
});

test("the start-up is read from happenings, a later restart is another run", () => {
  const run = startupOf(
    [
      at(0, "instance.starting", "catalog", "catalog-1 starting, pid 7"),
      at(2, "instance.ready", "catalog", "catalog-1 ready after 2000 ms"),
      at(2.1, "instance.starting", "orders", "orders-1 starting, pid 8"),
      at(4.9, "instance.ready", "orders", "orders-1 ready after 2800 ms"),
      at(300, "instance.starting", "orders", "orders-1 starting, pid 99"),
    ].reverse(),
  );
  expect(run?.bars.map((b) => [b.instance, (b.ready_us ?? 0) - b.starting_us])).toEqual([
    ["catalog-1", 2e6],
    ["orders-1", 2.8e6],
  ]);
  expect(run?.allReady).toBe(true);
  expect(startupOf([])).toBeNull();
});

test("axis steps are round and few", () => {
  expect(axisSteps(5.4)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(axisSteps(0.31)).toEqual([0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3]);
});
