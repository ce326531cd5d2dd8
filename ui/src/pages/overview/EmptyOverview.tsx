// Before the first service: what to paste, what to run, what to call; beside it what was noticed and what listens.

import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { get, problemFrom } from "../../api/client";
import type { Door, Happening, Service, Snippet as SnippetFile, Variable } from "../../api/types";
import { useHappenings } from "../../live/happenings";
import { useChannel, useOverview } from "../../live/hooks";
import { CopyButton } from "../../parts/CopyButton";
import { clock, plural } from "../../parts/format";
import { glyphOf } from "../../parts/Happening";
import { Glyph, StateMark } from "../../parts/marks";
import { Fault, Outlines } from "../../parts/Region";
import { Snippet, useSnippet } from "../../parts/Snippet";
import "./empty.css";
import { doorsByName, portOf, publicUrl, runCommand, served } from "./doors";
import { WaitingMap } from "./WaitingMap";

const NAME = "greeter";

export function EmptyOverview({ gateway }: { gateway: Service | undefined }) {
  const { values } = useChannel<Door>("doors");
  const doors = useMemo(() => doorsByName(values), [values]);
  const { rows } = useHappenings(60);
  const noticed = rows.filter((h) => h.severity !== "info" || /advice|refused/.test(h.name)).slice(0, 4);
  return (
    <div className="empty">
      <Lesson doors={doors} gateway={gateway} />
      <aside className="region line-left" aria-label="Noticed and doors">
        {noticed.length > 0 ? <Noticed rows={noticed} /> : null}
        <Doors doors={doors.filter(served)} />
        <ShellBlock />
        <Foot />
      </aside>
    </div>
  );
}

function Lesson({ doors, gateway }: { doors: readonly Door[]; gateway: Service | undefined }) {
  const { data, error, refetch } = useQuery({
    queryKey: ["snippets"],
    queryFn: ({ signal }) => get<SnippetFile[]>("snippets", {}, signal),
    staleTime: 60_000,
  });
  const [chosen, choose] = useSnippet(data ?? []);
  const variables = useVariables();
  const call = `curl ${publicUrl(doors)}/${NAME}/hello`;
  const otlp = portOf(doors, "otlp_grpc") ?? portOf(doors, "bus");
  return (
    <section className="lesson" aria-label="Attach a service">
      <h2>Waiting for your first service</h2>
      <p className="dim">
        Any program that can talk to RabbitMQ can answer HTTP here. Nothing to configure: paste this, run it, and its
        route exists while it runs.
      </p>
      {error ? <Fault problem={problemFrom(error)} retry={() => void refetch()} /> : null}
      {chosen && data ? (
        <Snippet snippets={data} chosen={chosen} choose={choose} change={NAME} />
      ) : error ? null : (
        <Outlines rows={8} />
      )}
      {chosen ? (
        <ol className="steps">
          <Step n={1} does="Install" command={chosen.install} />
          <Step
            n={2}
            does={`Save as ${chosen.file.split("/").at(-1)}, run`}
            command={runCommand(chosen.run, variables)}
          />
          <Step n={3} does="Call it" command={call} />
        </ol>
      ) : null}
      <WaitingMap gateway={gateway} name={NAME} />
      {otlp === null ? null : (
        <p className="meta small also">
          Already emit OpenTelemetry? Point it at <code>localhost:{otlp}</code>. Have a command to run? Name it under{" "}
          <code>[services.{NAME}]</code> in <code>reactor.toml</code>.
        </p>
      )}
    </section>
  );
}

function Step({ n, does, command }: { n: number; does: string; command: string }) {
  return (
    <li>
      <i>{n}</i>
      <span>
        {does} <code className="command">{command}</code>
      </span>
      <CopyButton text={command} label={`Copy: ${command}`} className="btn sm icon-box" />
    </li>
  );
}

/** Advice ends its first sentence with what was seen; the rest is the fix. */
export function adviceOf(line: string): { seen: string; fix: string } {
  const m = /^(.*?)(?:\. |: )(.+)$/s.exec(line);
  return m ? { seen: m[1] as string, fix: m[2] as string } : { seen: line, fix: "" };
}

function Noticed({ rows }: { rows: readonly Happening[] }) {
  return (
    <section aria-label="Noticed" className="line-bottom">
      <header className="region-head">
        <h2>Noticed</h2>
        <span className="count">{rows.length}</span>
      </header>
      <ul className="noticed">
        {rows.map((h) => {
          const { seen, fix } = adviceOf(h.line);
          return (
            <li key={h.seq}>
              <Glyph kind={glyphOf(h)} />
              <div>
                <b className="strong">{seen}</b> <span className="meta">{clock(h.at_us)}</span>
                {fix ? <div className="dim">{fix}</div> : null}
              </div>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

export function Doors({ doors }: { doors: readonly Door[] }) {
  const listening = doors.filter((d) => d.address !== null).length;
  return (
    <section aria-label="Doors">
      <header className="region-head">
        <h2>Doors</h2>
        <span className="count">{listening} listening</span>
      </header>
      <ul className="doors line-top">
        {doors.map((d) => (
          <DoorRow key={d.name} door={d} />
        ))}
      </ul>
    </section>
  );
}

function DoorRow({ door }: { door: Door }) {
  const on = door.address !== null;
  const failed = !on && served(door);
  return (
    <li title={`${door.speaks}${door.address ? `, ${door.address}` : ""}`}>
      <StateMark state={on ? "ready" : failed ? "failing" : "stopped"} />
      <span className={on ? undefined : "meta"}>{door.name.replace("_", " ")}</span>
      <span className="mono">
        {door.address ? door.address.split(",").map(shortAddress).filter(unique).join(" ") : ""}
      </span>
      <span className={`cut ${failed ? "err" : "meta"}`}>
        {on ? (door.accepted > 0 ? plural(door.accepted, "connection") : "listening") : door.state}
      </span>
    </li>
  );
}
const shortAddress = (address: string): string => /:\d+$/.exec(address.trim())?.[0] ?? address.trim();
const unique = (v: string, i: number, all: string[]): boolean => all.indexOf(v) === i;

/** What the start block says: the two are never different. */
function useVariables(): readonly Variable[] {
  const { data } = useQuery({
    queryKey: ["environment"],
    queryFn: ({ signal }) => get<Variable[]>("environment", {}, signal),
    staleTime: 60_000,
  });
  return data ?? [];
}

export function ShellBlock() {
  const lines = useVariables();
  if (lines.length === 0) return null;
  return (
    <section aria-label="For your shell">
      <header className="region-head">
        <h2>For your shell</h2>
        <div className="region-tools">
          <CopyButton
            text={lines.map(({ name, value }) => `export ${name}=${value}`).join("\n")}
            label="Copy the variables"
          >
            Copy
          </CopyButton>
        </div>
      </header>
      <pre className="code shell" tabIndex={0}>
        {lines.map(({ name, value }) => (
          <span key={name}>
            <span className="meta">{name}=</span>
            {value}
            {"\n"}
          </span>
        ))}
      </pre>
    </section>
  );
}

function Foot() {
  const { message_storage } = useOverview();
  return (
    <p className="meta small foot">
      Keys: <kbd>?</kbd> all shortcuts, <kbd>Ctrl K</kbd> go anywhere.
      {message_storage === "memory" ? " Messages and telemetry are kept in memory, not on disk." : ""}
    </p>
  );
}
