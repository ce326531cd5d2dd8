// The bottom line: what came in, what is kept, what was evicted or dropped, exactly; memory; version; connection.

import type { SignalLedger } from "../api/types";
import { useLink, useNowUs, useOverview } from "../live/hooks";
import { bytes, bytesOf, countShort, share, upFor } from "../parts/format";

export function Ledger() {
  const overview = useOverview();
  const { telemetry } = overview;
  return (
    <footer className="ledger">
      {telemetry ? (
        <>
          <Signal name="Spans" of={telemetry.spans} />
          <Signal name="Logs" of={telemetry.logs} />
          <Signal name="Points" of={telemetry.points} />
        </>
      ) : null}
      <SampleNote rate={overview.sample_rate} />
      <span className="grow" />
      <LedgerFacts />
    </footer>
  );
}

export function Signal({ name, of }: { name: string; of: SignalLedger }) {
  const parts: [number, string][] = [
    [of.received, "received"],
    [of.kept, "kept"],
  ];
  if (of.evicted > 0 || of.dropped > 0) parts.push([of.evicted, "evicted"], [of.dropped, "dropped"]);
  return (
    <span>
      {name}{" "}
      {parts.map(([n, word], i) => (
        <span key={word}>
          <b className={word === "dropped" && n > 0 ? "err" : undefined}>{countShort(n)}</b> {word}
          {i < parts.length - 1 ? ", " : ""}
        </span>
      ))}
    </span>
  );
}

/** Above its budget reactor keeps a share of its own traces; every view says at which rate. */
export function SampleNote({ rate }: { rate: number | undefined }) {
  if (rate === undefined || rate >= 1) return null;
  return (
    <span title="Counters stay exact">
      Own traces sampled at <b className="warn">{share(rate)}</b>
    </span>
  );
}

export function LedgerFacts() {
  const { telemetry, memory_bytes, version, started_us } = useOverview();
  const link = useLink();
  const now = useNowUs();
  const of = telemetry ? bytesOf(telemetry.bytes, telemetry.bytes_max) : null;
  return (
    <>
      {of ? (
        <span>
          Telemetry <b>{of.used}</b> of <b>{of.max}</b>
        </span>
      ) : null}
      {memory_bytes !== undefined ? (
        <span>
          Memory <b>{bytes(memory_bytes)}</b>
        </span>
      ) : null}
      {version ? (
        <span>
          reactor {version}
          {started_us ? (
            <>
              , up <b>{upFor((now - started_us) / 1e6)}</b>
            </>
          ) : null}
        </span>
      ) : null}
      {link.state === "open" ? (
        <span className="accent">
          {link.rtt_ms === null ? "Connected" : `Connected, ${Math.max(1, Math.round(link.rtt_ms))} ms`}
        </span>
      ) : (
        <span className={link.state === "lost" ? "err" : undefined}>
          {link.state === "lost" ? "Disconnected" : "Connecting"}
        </span>
      )}
    </>
  );
}
