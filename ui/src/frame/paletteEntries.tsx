// What the palette offers: pages, services, instances and queues to go to, what can be run, what can be searched.

import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { problemFrom, send } from "../api/client";
import type { Instance, Queue, Service } from "../api/types";
import { useServices } from "../live/hooks";
import { paused } from "../live/pause";
import { useQueueNames } from "../live/useList";
import { commandPath } from "../pages/services/Commands";
import { commandsFor, stateWords } from "../pages/services/rows";
import { count } from "../parts/format";
import type { IconName } from "../parts/Icon";
import { stateTone } from "../parts/marks";
import { quote } from "../query/tokens";
import { PAGES, type PageEntry } from "./pages";
import { type Candidate, isTraceId } from "./paletteMatch";
import { switchTheme } from "./theme";

export interface Entry extends Candidate {
  icon: IconName;
  /** At the right: its state, then what it is. */
  state?: ReactNode;
  what: string;
  mono?: boolean;
  slot?: number | null;
  rods?: Instance["state"][];
  key?: string;
  run: () => void;
  /** Ctrl+Enter: beside the page instead of in its place. */
  beside?: () => void;
  actions?: Entry[];
}

export interface Entries {
  known: Entry[];
  searches: (mode: string, text: string) => Entry[];
}

/** `text` is what is typed: of a great many queues those that hold it are asked for. */
export function useEntries(space: string, text: string, onFault: (text: string) => void): Entries {
  const navigate = useNavigate();
  const { list: services } = useServices(space);
  const queues = useQueueNames(space, text);
  return useMemo(() => {
    const commands = (s: Service, i: Instance | null) => commandEntries(s, i, onFault);
    const known: Entry[] = [
      ...PAGES.map((page) => pageEntry(page, navigate)),
      ...services.flatMap((s) => [
        serviceEntry(s, commands(s, null), navigate),
        ...instanceEntries(s, commands, navigate),
      ]),
      ...queues.map((q) => queueEntry(q, navigate)),
      ...services.flatMap((s) => [
        ...commands(s, null),
        ...(s.instances.length > 1 ? s.instances.flatMap((i) => commands(s, i)) : []),
      ]),
      { id: "run-theme", group: "Run", text: "Switch theme", icon: "sun", what: "", key: "⇧T", run: switchTheme },
      {
        id: "run-pause",
        group: "Run",
        text: "Pause or resume",
        icon: "pause",
        what: "",
        key: "P",
        run: () => paused.toggle(),
      },
    ];
    return { known, searches: (mode, text) => searches(mode, text, services, navigate) };
  }, [services, queues, navigate, onFault]);
}

type Command = "start" | "stop" | "restart";
const COMMAND_ICON: Record<Command, IconName> = { restart: "redo", stop: "stop", start: "play" };

/** What can be done to a service that reactor runs, or to one instance of it. */
function commandEntries(s: Service, i: Instance | null, onFault: (text: string) => void): Entry[] {
  if (!s.owned) return [];
  const name = i?.name ?? s.name;
  return commandsFor(i ? [i.state] : s.instances.map((x) => x.state)).map((command) => ({
    id: `${command}-${name}`,
    group: "Run",
    text: `${command.charAt(0).toUpperCase()}${command.slice(1)} ${name}`,
    icon: COMMAND_ICON[command],
    what: i ? "Instance" : "Service",
    run: () =>
      void send("POST", commandPath(s.name, command, i?.name)).catch((e: unknown) => onFault(problemFrom(e).detail)),
  }));
}

function pageEntry(page: PageEntry, navigate: Navigate): Entry {
  const key = page.key ? { key: `G ${page.key.toUpperCase()}` } : {};
  const run = () => void navigate({ to: page.to });
  return { id: `page-${page.to}`, group: "Go to", text: page.name, icon: page.icon, what: "Page", ...key, run };
}

const unwell = (x: { state: Instance["state"]; reason: string }): ReactNode =>
  x.state === "ready" ? undefined : <span className={stateTone(x.state)}>{stateWords(x)}</span>;

function serviceEntry(s: Service, commands: Entry[], navigate: Navigate): Entry {
  const node = s.name === "gateway" ? "gateway" : `service:${s.space} ${s.name}`;
  return {
    id: `service-${s.name}`,
    group: "Go to",
    text: s.name,
    icon: "services",
    what: "Service",
    slot: s.slot,
    rods: s.instances.map((i) => i.state),
    state: unwell(s),
    run: () => void navigate({ to: "/services", search: { service: s.name } }),
    beside: () => void navigate({ to: "/", search: { node } }),
    actions: serviceActions(s, commands, navigate),
  };
}

/** A single instance is reached through its service. */
function instanceEntries(s: Service, commands: (s: Service, i: Instance) => Entry[], navigate: Navigate): Entry[] {
  if (s.instances.length < 2) return [];
  return s.instances.map((i) => ({
    id: `instance-${s.name}-${i.id}`,
    group: "Go to",
    text: i.name,
    icon: "services",
    mono: true,
    what: "Instance",
    state: unwell(i),
    run: () => void navigate({ to: "/services", search: { service: s.name, instance: i.name } }),
    actions: commands(s, i),
  }));
}

type Navigate = ReturnType<typeof useNavigate>;

function serviceActions(s: Service, commands: Entry[], navigate: Navigate): Entry[] {
  const go = (id: string, text: string, icon: IconName, run: () => void): Entry => ({
    id: `${id}-${s.name}`,
    group: "Run",
    text,
    icon,
    what: "",
    run,
  });
  return [
    go(
      "console",
      `Console of ${s.name}`,
      "services",
      () => void navigate({ to: "/services", search: { service: s.name } }),
    ),
    go("logs", `Logs of ${s.name}`, "logs", () => void navigate({ to: "/logs", search: { q: `service:${s.name}` } })),
    go(
      "traces",
      `Traces through ${s.name}`,
      "traces",
      () => void navigate({ to: "/traces", search: { q: `service:${s.name}` } }),
    ),
    ...commands,
  ];
}

function queueEntry(q: Queue, navigate: Navigate): Entry {
  return {
    id: `queue-${q.name}`,
    group: "Go to",
    text: q.name,
    icon: "queues",
    mono: true,
    what: "Queue",
    state:
      q.ready > 0 ? (
        <span className={q.tone === "normal" ? undefined : q.tone}>{count(q.ready)} ready</span>
      ) : undefined,
    run: () =>
      void navigate({ to: "/queues/$queueSpace/$queueName", params: { queueSpace: q.space, queueName: q.name } }),
    beside: () => void navigate({ to: "/", search: { node: `queue:${q.space} ${q.name}` } }),
  };
}

function searches(mode: string, text: string, services: readonly Service[], navigate: Navigate): Entry[] {
  if (text === "" || mode === "commands") return [];
  const id = text.toLowerCase();
  const search = (key: string, words: string, icon: IconName, run: () => void, what = ""): Entry => ({
    id: key,
    group: "Search",
    text: words,
    icon,
    what,
    run,
  });
  const traces = (q: string) => () => void navigate({ to: "/traces", search: { q } });
  if (isTraceId(id)) {
    const open = () => void navigate({ to: "/traces/$traceId", params: { traceId: id } });
    return [{ ...search("trace", id, "traces", open, "Trace"), mono: true }];
  }
  if (mode === "trace") return [search("trace-part", `Traces whose id holds ${id}`, "traces", traces(id))];
  if (mode === "path") return [search("path", `Traces of ${text}`, "traces", traces(quote(text)))];
  const service = services.find((s) => s.name.startsWith(id));
  const logs = () => void navigate({ to: "/logs", search: { q: quote(text) } });
  return [
    search("logs", `Logs containing ${text}`, "logs", logs),
    service
      ? search("through", `Traces through ${service.name}`, "traces", traces(`service:${service.name}`))
      : search("traces", `Traces containing ${text}`, "traces", traces(quote(text))),
  ];
}
