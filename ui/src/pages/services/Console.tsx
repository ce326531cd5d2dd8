// The console of the chosen instance, with life-cycle lines ruled in. Holds still while it is read.

import { Link } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { get, segment } from "../../api/client";
import type { ConsoleLine, Instance, Page, Service } from "../../api/types";
import { useKeys } from "../../keys/useKeys";
import { useFreshCount, useRows } from "../../live/hooks";
import { paused } from "../../live/pause";
import { ansi } from "../../parts/ansi";
import { type ConsoleState, ConsoleView, type Stamp } from "../../parts/console";
import { clockMs, count, plural } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { Menu } from "../../parts/Menu";
import { ServiceName } from "../../parts/marks";
import { Empty, Fault } from "../../parts/Region";
import { Segments } from "../../parts/Segments";
import { chooseZone, useZone } from "../../parts/zone";
import { Commands } from "./Commands";

interface ConsoleProps {
  service: Service;
  instance: Instance | null;
  onInstance: (name: string) => void;
  close: () => void;
}

export function Console({ service, instance, onInstance, close }: ConsoleProps) {
  const shown = instance ?? service.instances[0] ?? null;
  const [state, setState] = useState<ConsoleState>({ following: true, fresh: 0, lines: 0 });
  const [delta, setDelta] = useState(false);
  const [wrap, setWrap] = useWrap();
  const zone = useZone();
  return (
    <section className="region console" aria-label={`Console of ${shown?.name ?? service.name}`}>
      <header className="region-head line-bottom console-head">
        <button type="button" className="btn icon narrow-only" aria-label="Back" onClick={close}>
          <Icon name="back" />
        </button>
        <h2>Console</h2>
        <InstancePicker service={service} shown={shown} onInstance={onInstance} />
        {service.owned ? <span className="count">{plural(state.lines, "line")}</span> : null}
        <div className="region-tools">
          {service.owned ? (
            <>
              <button
                type="button"
                className="btn sm"
                aria-pressed={wrap}
                title="Long lines go on in the next row (W)"
                onClick={() => setWrap(!wrap)}
              >
                Wrap
              </button>
              <span className="wide-only">
                <Segments<"local" | "utc" | "delta">
                  label="Times"
                  value={delta ? "delta" : zone}
                  options={[
                    ["local", "Local"],
                    ["utc", "UTC"],
                    ["delta", "Delta"],
                  ]}
                  onChange={(v) => {
                    setDelta(v === "delta");
                    if (v !== "delta") chooseZone(v);
                  }}
                />
              </span>
              {shown ? <Download service={service.name} instance={shown.name} /> : null}
              <Commands service={service} instance={instance} />
            </>
          ) : null}
        </div>
      </header>
      {service.owned && shown ? (
        <Lines
          key={`${service.name} ${shown.name}`}
          service={service.name}
          instance={shown.name}
          stamp={delta ? "delta" : "clock"}
          wrap={wrap}
          onWrap={setWrap}
          state={state}
          onState={setState}
        />
      ) : (
        <NoConsole service={service} />
      )}
      <footer className="console-foot line-top">
        <LastExit service={service} instance={shown} />
        <span className="grow" />
        <Link className="link" to="/logs" search={{ q: `service:${service.name}` }}>
          All logs of {service.name}
        </Link>
      </footer>
    </section>
  );
}

const WRAP_KEY = "reactor.console.wrap";

/** Whether lines wrap, remembered. */
function useWrap(): [boolean, (wrap: boolean) => void] {
  const [wrap, setWrap] = useState(() => localStorage.getItem(WRAP_KEY) === "yes");
  const choose = (next: boolean) => {
    setWrap(next);
    localStorage.setItem(WRAP_KEY, next ? "yes" : "no");
  };
  return [wrap, choose];
}

function InstancePicker({
  service,
  shown,
  onInstance,
}: {
  service: Service;
  shown: Instance | null;
  onInstance: (name: string) => void;
}) {
  if (service.instances.length < 2)
    return <ServiceName name={shown?.name ?? service.name} slot={service.slot} link={false} />;
  return (
    <Menu
      label="Instance"
      className="console-instance"
      button={
        <>
          <ServiceName name={shown?.name ?? service.name} slot={service.slot} link={false} />
          <Icon name="down" size={12} />
        </>
      }
      items={service.instances.map((i) => ({ label: i.name, on: i === shown, run: () => onInstance(i.name) }))}
    />
  );
}

function NoConsole({ service }: { service: Service }) {
  const built = service.sources.includes("built_in");
  return (
    <div className="grow">
      <Empty
        title={
          built
            ? `${service.name} is part of reactor`
            : `reactor did not start ${service.name}, so it has no console here`
        }
      >
        {built
          ? "Its log records are in the logs."
          : `Its output is in its own terminal, and in the logs if it sends them. Named with its command under [services.${service.name}] in reactor.toml, reactor runs it.`}
      </Empty>
    </div>
  );
}

interface LinesProps {
  service: string;
  instance: string;
  stamp: Stamp;
  wrap: boolean;
  onWrap: (wrap: boolean) => void;
  state: ConsoleState;
  onState: (state: ConsoleState) => void;
}

function Lines({ service, instance, stamp, wrap, onWrap, state, onState }: LinesProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<ConsoleView | null>(null);
  const [feed, { problem, begun, next, first }] = useRows<ConsoleLine>(
    { channel: "console", service, instance, backfill: 1000 },
    { capacity: 20_000 },
  );
  useEffect(() => {
    const made = new ConsoleView(host.current as HTMLDivElement, feed, onState);
    view.current = made;
    const stop = paused.onResume(() => made.resume());
    return () => {
      stop();
      made.destroy();
      paused.set("scroll", false);
    };
  }, [feed, onState]);
  useEffect(() => view.current?.setStamp(stamp), [stamp]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a view made anew must be told too
  useEffect(() => view.current?.setWrap(wrap), [wrap, feed]);
  useEffect(() => paused.set("scroll", !state.following), [state.following]);
  useFreshCount(state.fresh);
  useKeys([
    { keys: "End", does: "Live end", run: () => paused.resume() },
    { keys: "w", does: "Wrap long lines", run: () => onWrap(!wrap) },
  ]);
  return (
    <div className="console-lines" ref={host}>
      {problem ? <Fault problem={problem} /> : null}
      {begun && !problem && next === first ? <Empty title={`${instance} has printed nothing yet`} /> : null}
      {state.following ? null : (
        <button type="button" className="follow" onClick={() => paused.resume()}>
          <Icon name="down" size={12} />
          {state.fresh > 0 ? `${count(state.fresh)} new, follow` : "Follow"} <kbd>End</kbd>
        </button>
      )}
    </div>
  );
}

function LastExit({ service, instance }: { service: Service; instance: Instance | null }) {
  const x = instance ?? service;
  if (x.state !== "failing" && x.state !== "degraded") return null;
  return <span className={`cut ${x.state === "failing" ? "err" : "warn"}`}>{x.reason}</span>;
}

const PAGE = 5000;

/** Everything that is kept of the console, as plain text. */
async function wholeConsole(service: string, instance: string): Promise<string> {
  const pages: ConsoleLine[][] = [];
  let before: number | null | undefined;
  do {
    const page: Page<ConsoleLine> = await get(`services/${segment(service)}/console`, {
      instance,
      before,
      limit: PAGE,
    });
    pages.unshift(page.rows);
    before = page.before;
  } while (before !== null);
  const text = (line: ConsoleLine) =>
    ansi(line.text)
      .map((s) => s.text)
      .join("");
  return pages
    .flat()
    .map((line) => `${clockMs(line.at_us)} ${line.kind === "lifecycle" ? `-- ${text(line)}` : text(line)}\n`)
    .join("");
}

function Download({ service, instance }: { service: string; instance: string }) {
  const [busy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    try {
      const url = URL.createObjectURL(new Blob([await wholeConsole(service, instance)], { type: "text/plain" }));
      const link = document.createElement("a");
      link.href = url;
      link.download = `${instance}.log`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    } finally {
      setBusy(false);
    }
  };
  return (
    <button type="button" className="btn sm wide-only" disabled={busy} onClick={() => void save()}>
      Download
    </button>
  );
}
