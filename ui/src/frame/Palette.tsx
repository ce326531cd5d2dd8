// The command palette: go to, run, search, from what the page already has, so that it opens at once.

import { type KeyboardEvent, type ReactNode, useEffect, useId, useMemo, useRef, useState } from "react";
import { caps } from "../keys/keys";
import { Icon } from "../parts/Icon";
import { Pill, Rods, slotColour } from "../parts/marks";
import { useSpace } from "../time/useRange";
import { type Entries, type Entry, useEntries } from "./paletteEntries";
import { find, type Group, type Match, modeOf } from "./paletteMatch";
import "./palette.css";

const PER_GROUP: Record<Group, number> = { "Go to": 8, Run: 4, Search: 3 };
const GROUPS: Group[] = ["Go to", "Run", "Search"];

export function Palette({ close }: { close: () => void }) {
  const [input, setInput] = useState("");
  const [at, setAt] = useState(0);
  const [inside, setInside] = useState<Entry | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const space = useSpace();
  const entries = useEntries(space, modeOf(input).mode === "all" ? modeOf(input).text : "", setFault);
  const groups = useMemo(() => shownGroups(entries, input, inside), [entries, input, inside]);
  const flat = groups.flatMap((g) => g.matches);
  const chosen = flat[Math.min(at, flat.length - 1)]?.item;
  useEffect(() => {
    const node = dialog.current;
    node?.showModal();
    return () => node?.close();
  }, []);

  const type = (text: string) => {
    setInput(text);
    setAt(0);
  };
  const enter = (entry: Entry | null) => {
    setInside(entry);
    type("");
  };
  const leave = () => (inside ? enter(null) : close());
  const run = (entry: Entry, beside: boolean) => {
    close();
    (beside ? (entry.beside ?? entry.run) : entry.run)();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    event.stopPropagation();
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setAt((Math.min(at, flat.length - 1) + step + flat.length) % Math.max(1, flat.length));
    else if (event.key === "Enter" && chosen) run(chosen, event.ctrlKey || event.metaKey);
    else if (event.key === "Tab" && chosen?.actions?.length) enter(chosen);
    else if (event.key === "Escape" || (event.key === "Backspace" && input === "" && inside)) leave();
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
          onChange={(event) => type(event.target.value)}
          autoFocus
        />
        <Pill>Space {space}</Pill>
      </div>
      <Results id={id} groups={groups} chosen={chosen} onPoint={(m) => setAt(flat.indexOf(m))} onRun={run}>
        {flat.length === 0 ? <p className="note meta">Nothing is called “{input}”.</p> : null}
        {fault ? (
          <p className="note err" role="alert">
            {fault}
          </p>
        ) : null}
      </Results>
      <PaletteFoot />
    </dialog>
  );
}

interface ResultsProps {
  id: string;
  groups: readonly ShownGroup[];
  chosen: Entry | undefined;
  onPoint: (match: Match<Entry>) => void;
  onRun: (entry: Entry, beside: boolean) => void;
  children: ReactNode;
}

function Results({ id, groups, chosen, onPoint, onRun, children }: ResultsProps) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (chosen) list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  return (
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
              onPoint={() => onPoint(m)}
              onRun={(beside) => onRun(m.item, beside)}
            />
          ))}
        </div>
      ))}
      {children}
    </div>
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
