// The command palette: go to, run, search, from what the page already has, so that it opens at once.

import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, type ReactNode, useEffect, useId, useMemo, useRef, useState } from "react";
import { problemFrom, send } from "../api/client";
import type { Instance, Queue, Service } from "../api/types";
import { caps } from "../keys/keys";
import { useQueues, useServices } from "../live/hooks";
import { paused } from "../live/pause";
import { commandPath } from "../pages/services/Commands";
import { commandsFor, stateWords } from "../pages/services/rows";
import { count } from "../parts/format";
import { Icon, type IconName } from "../parts/Icon";
import { Pill, Rods, slotColour, stateTone } from "../parts/marks";
import { quote } from "../query/tokens";
import { useSpace } from "../time/useRange";
import { PAGES } from "./pages";
import { type Candidate, find, type Group, isTraceId, type Match, modeOf } from "./palette";
import { switchTheme } from "./theme";
import "./palette.css";

interface Entry extends Candidate {
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

const PER_GROUP: Record<Group, number> = { "Go to": 8, Run: 4, Search: 3 };
const GROUPS: Group[] = ["Go to", "Run", "Search"];

export function Palette({ close }: { close: () => void }) {
  const [input, setInput] = useState("");
  const [at, setAt] = useState(0);
  const [inside, setInside] = useState<Entry | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const dialog = useRef<HTMLDialogElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const id = useId();
  const space = useSpace();
  const entries = useEntries(space, setFault);
  const groups = useMemo(() => shownGroups(entries, input, inside), [entries, input, inside]);
  const flat = groups.flatMap((g) => g.matches);
  const chosen = flat[Math.min(at, flat.length - 1)]?.item;

  useEffect(() => {
    const node = dialog.current;
    node?.showModal();
    return () => node?.close();
  }, []);
  useEffect(() => {
    if (at >= 0) list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [at]);

  const run = (entry: Entry, beside: boolean) => {
    close();
    (beside ? (entry.beside ?? entry.run) : entry.run)();
  };
  const leave = () => {
    if (!inside) return close();
    setInside(null);
    setInput("");
    setAt(0);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    event.stopPropagation();
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setAt((Math.min(at, flat.length - 1) + step + flat.length) % Math.max(1, flat.length));
    else if (event.key === "Enter" && chosen) run(chosen, event.ctrlKey || event.metaKey);
    else if (event.key === "Tab" && chosen?.actions?.length) {
      setInside(chosen);
      setInput("");
      setAt(0);
    } else if (event.key === "Escape") leave();
    else if (event.key === "Backspace" && input === "" && inside) leave();
    else return;
    event.preventDefault();
  };

  return (
    <dialog
      ref={dialog}
      className="dialog palette"
      aria-label="Go to or run"
      onCancel={(event) => {
        event.preventDefault();
        leave();
      }}
      onKeyDown={onKeyDown}
      onClick={(event) => {
        if (event.target === dialog.current) close();
      }}
    >
      <div className="palette-input">
        <span className="meta flex">
          <Icon name="search" />
        </span>
        {inside ? <Pill>{inside.text}</Pill> : null}
        <input
          role="combobox"
          aria-expanded={flat.length > 0}
          aria-controls={`${id}-list`}
          aria-activedescendant={chosen ? `${id}-${chosen.id}` : undefined}
          aria-label="Go to or run"
          autoComplete="off"
          spellCheck={false}
          placeholder={inside ? "Choose an action" : "Go to or run"}
          value={input}
          onChange={(event) => {
            setInput(event.target.value);
            setAt(0);
          }}
          autoFocus
        />
        <Pill>Space {space}</Pill>
      </div>
      <div ref={list} id={`${id}-list`} className="palette-list" role="listbox" aria-label="Results">
        {groups.map((g) => (
          <div key={g.name} role="group" aria-label={g.name}>
            <div className="palette-group" aria-hidden="true">
              {g.name}
            </div>
            {g.matches.map((m) => (
              <Option
                key={m.item.id}
                id={`${id}-${m.item.id}`}
                match={m}
                on={m.item === chosen}
                onPoint={() => setAt(flat.indexOf(m))}
                onRun={(beside) => run(m.item, beside)}
              />
            ))}
          </div>
        ))}
        {flat.length === 0 ? <p className="note meta">Nothing is called “{input}”.</p> : null}
        {fault ? (
          <p className="note err" role="alert">
            {fault}
          </p>
        ) : null}
      </div>
      <PaletteFoot />
    </dialog>
  );
}

function PaletteFoot() {
  const items: [string[], string][] = [
    [["↑", "↓"], "move"],
    [["↵"], "open"],
    [[caps("Ctrl ↵")], "beside"],
    [["Tab"], "actions"],
  ];
  const prefixes: [string, string][] = [
    [">", "commands"],
    ["#", "trace id"],
    ["/", "path"],
  ];
  return (
    <div className="palette-foot">
      {items.map(([keys, does]) => (
        <span key={does}>
          {keys.map((k) => (
            <kbd key={k}>{k}</kbd>
          ))}
          {does}
        </span>
      ))}
      <span className="grow" />
      {prefixes.map(([k, does]) => (
        <span key={k}>
          <kbd>{k}</kbd>
          {does}
        </span>
      ))}
    </div>
  );
}

interface OptionProps {
  id: string;
  match: Match<Entry>;
  on: boolean;
  onPoint: () => void;
  onRun: (beside: boolean) => void;
}

function Option({ id, match, on, onPoint, onRun }: OptionProps) {
  const { item, marks } = match;
  return (
    <div
      id={id}
      className="palette-option"
      role="option"
      aria-selected={on}
      tabIndex={-1}
      onPointerMove={onPoint}
      onClick={(event) => onRun(event.ctrlKey || event.metaKey)}
    >
      <Icon name={item.icon} />
      {item.slot !== undefined ? <i className="palette-rod" style={{ background: slotColour(item.slot) }} /> : null}
      <span className={`cut${item.mono ? " mono" : ""}`}>{marked(item.text, marks)}</span>
      {item.rods ? <Rods states={item.rods} /> : null}
      <span className="palette-to">
        {item.state}
        <span>{item.what}</span>
        {item.key ? <kbd>{item.key}</kbd> : null}
      </span>
    </div>
  );
}

function marked(text: string, marks: readonly [number, number][]): ReactNode[] {
  const out: ReactNode[] = [];
  let at = 0;
  for (const [from, to] of marks) {
    if (from < at) continue;
    out.push(text.slice(at, from), <mark key={from}>{text.slice(from, to)}</mark>);
    at = to;
  }
  out.push(text.slice(at));
  return out;
}

interface ShownGroup {
  name: string;
  matches: Match<Entry>[];
}

function shownGroups(entries: Entries, input: string, inside: Entry | null): ShownGroup[] {
  const { mode, text } = modeOf(input);
  if (inside)
    return [{ name: inside.text, matches: find(inside.actions ?? [], text, 12) }].filter((g) => g.matches.length > 0);
  const all = [...entries.known, ...entries.searches(mode, text)];
  return GROUPS.filter((g) => mode === "all" || (mode === "commands" ? g === "Run" : g === "Search"))
    .map((g) => {
      const items = all.filter((e) => e.group === g);
      // Searches are made of the text: they need no match, and none without a text.
      const matches = g === "Search" ? items.map((item) => ({ item, marks: [] })) : find(items, text, PER_GROUP[g]);
      return { name: g === "Search" && text ? `Search for “${text}”` : g, matches };
    })
    .filter((g) => g.matches.length > 0);
}

interface Entries {
  known: Entry[];
  searches: (mode: string, text: string) => Entry[];
}

function useEntries(space: string, onFault: (text: string) => void): Entries {
  const navigate = useNavigate();
  const { list: services } = useServices(space);
  const { list: queues } = useQueues(space);
  return useMemo(() => {
    const command = (s: Service, c: "start" | "stop" | "restart", i: Instance | null): Entry => {
      const name = i?.name ?? s.name;
      const verb = `${c.charAt(0).toUpperCase()}${c.slice(1)}`;
      const run = () =>
        void send("POST", commandPath(s.name, c, i?.name)).catch((e: unknown) => onFault(problemFrom(e).detail));
      const icon = c === "restart" ? "redo" : c === "stop" ? "stop" : "play";
      return { id: `${c}-${name}`, group: "Run", text: `${verb} ${name}`, icon, what: i ? "Instance" : "Service", run };
    };
    const commands = (s: Service, i: Instance | null): Entry[] =>
      s.owned ? commandsFor(i ? [i.state] : s.instances.map((x) => x.state)).map((c) => command(s, c, i)) : [];
    const known: Entry[] = [];
    for (const page of PAGES) {
      known.push({
        id: `page-${page.to}`,
        group: "Go to",
        text: page.name,
        icon: page.icon,
        what: "Page",
        ...(page.key ? { key: `G ${page.key.toUpperCase()}` } : {}),
        run: () => void navigate({ to: page.to }),
      });
    }
    for (const s of services) {
      known.push({
        id: `service-${s.name}`,
        group: "Go to",
        text: s.name,
        icon: "services",
        what: "Service",
        slot: s.slot,
        rods: s.instances.map((i) => i.state),
        state: s.state === "ready" ? undefined : <span className={stateTone(s.state)}>{stateWords(s)}</span>,
        run: () => void navigate({ to: "/services", search: { service: s.name } }),
        beside: () =>
          void navigate({
            to: "/",
            search: { node: s.name === "gateway" ? "gateway" : `service:${s.space} ${s.name}` },
          }),
        actions: serviceActions(s, commands(s, null), navigate),
      });
      if (s.instances.length > 1) {
        for (const i of s.instances) {
          known.push({
            id: `instance-${s.name}-${i.id}`,
            group: "Go to",
            text: i.name,
            icon: "services",
            mono: true,
            what: "Instance",
            state: i.state === "ready" ? undefined : <span className={stateTone(i.state)}>{stateWords(i)}</span>,
            run: () => void navigate({ to: "/services", search: { service: s.name, instance: i.name } }),
            actions: commands(s, i),
          });
        }
      }
    }
    for (const q of queues) known.push(queueEntry(q, navigate));
    for (const s of services) {
      known.push(...commands(s, null));
      if (s.instances.length > 1) for (const i of s.instances) known.push(...commands(s, i));
    }
    known.push(
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
    );
    return { known, searches: (mode, text) => searches(mode, text, services, navigate) };
  }, [services, queues, navigate, onFault]);
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
  const base = { group: "Search" as const };
  const id = text.toLowerCase();
  if (mode === "trace" || isTraceId(id)) {
    if (isTraceId(id))
      return [
        {
          ...base,
          id: "trace",
          text: id,
          mono: true,
          icon: "traces",
          what: "Trace",
          run: () => void navigate({ to: "/traces/$traceId", params: { traceId: id } }),
        },
      ];
    return [
      {
        ...base,
        id: "trace-part",
        text: `Traces whose id holds ${id}`,
        icon: "traces",
        what: "",
        run: () => void navigate({ to: "/traces", search: { q: id } }),
      },
    ];
  }
  if (mode === "path") {
    return [
      {
        ...base,
        id: "path",
        text: `Traces of ${text}`,
        icon: "traces",
        what: "",
        run: () => void navigate({ to: "/traces", search: { q: quote(text) } }),
      },
    ];
  }
  const service = services.find((s) => s.name.startsWith(id));
  const out: Entry[] = [
    {
      ...base,
      id: "logs",
      text: `Logs containing ${text}`,
      icon: "logs",
      what: "",
      run: () => void navigate({ to: "/logs", search: { q: quote(text) } }),
    },
  ];
  if (service)
    out.push({
      ...base,
      id: "through",
      text: `Traces through ${service.name}`,
      icon: "traces",
      what: "",
      run: () => void navigate({ to: "/traces", search: { q: `service:${service.name}` } }),
    });
  else
    out.push({
      ...base,
      id: "traces",
      text: `Traces containing ${text}`,
      icon: "traces",
      what: "",
      run: () => void navigate({ to: "/traces", search: { q: quote(text) } }),
    });
  return out;
}
