// Four charts below the map: requests, messages, errors, latency. They share the plot's left edge and the cursor.

import { useMemo } from "react";
import { axisDuration, axisNumber, axisShare } from "../../parts/axis";
import { ChartView } from "../../parts/ChartView";
import { Num } from "../../parts/Num";
import { Duration } from "../../parts/Time";
import { type ChartLine, named, summed, unitFactor, useChartData, useSeries } from "../../time/useSeries";

const LEFT = 46;

export function Bands() {
  return (
    <section className="bands line-top" aria-label="Charts">
      <RateBand name="Requests" instrument="reactor.gateway.requests" empty="No requests in this range" />
      <RateBand name="Messages" instrument="reactor.messages.published" empty="No messages in this range" />
      <ErrorBand />
      <LatencyBand />
    </section>
  );
}

function RateBand({ name, instrument, empty }: { name: string; instrument: string; empty: string }) {
  const { answer } = useSeries({ name: instrument });
  const lines = useMemo<ChartLine[]>(
    () => [{ name, values: summed(answer?.series), ink: "--chart-1", area: true }],
    [answer, name],
  );
  const data = useChartData(answer, lines);
  return (
    <ChartView
      name={name}
      data={data}
      height={156}
      left={LEFT}
      axis={axisNumber}
      least={2}
      empty={empty}
      value={(i) => <Num value={lines[0]?.values?.[i]} as="rate" />}
    />
  );
}

/** Share of failed requests, bucket by bucket; unknown where there were none. */
export function shares(failed: (number | null)[] | null, all: (number | null)[] | null): (number | null)[] | null {
  if (!all) return null;
  return all.map((n, i) => (n === null ? null : n === 0 ? null : (failed?.[i] ?? 0) / n));
}

function ErrorBand() {
  const { answer: all } = useSeries({ name: "reactor.gateway.requests" });
  const { answer: failed } = useSeries({ name: "reactor.gateway.failed" });
  const lines = useMemo<ChartLine[]>(
    () => [
      { name: "Errors", values: shares(summed(failed?.series), summed(all?.series)), ink: "--bar-error", bars: true },
    ],
    [all, failed],
  );
  const data = useChartData(all, lines);
  return (
    <ChartView
      name="Errors"
      data={data}
      height={156}
      left={LEFT}
      axis={axisShare}
      least={0.004}
      empty="No requests in this range"
      value={(i) => {
        const v = lines[0]?.values?.[i];
        return <Num value={v} as="share" tone={v ? "err" : "normal"} />;
      }}
    />
  );
}

function LatencyBand() {
  const { answer } = useSeries({ name: "reactor.gateway.duration" });
  const lines = useMemo<ChartLine[]>(() => {
    const factor = unitFactor(answer?.unit ?? "s");
    return [
      { name: "p50", values: summed(named(answer?.series, "p50").slice(0, 1), factor), ink: "--chart-2", dashed: true },
      { name: "p95", values: summed(named(answer?.series, "p95").slice(0, 1), factor), ink: "--chart-1" },
    ];
  }, [answer]);
  const data = useChartData(answer, lines);
  return (
    <ChartView
      name="Gateway latency"
      data={data}
      height={156}
      left={LEFT}
      axis={axisDuration}
      least={2e6}
      empty="No requests in this range"
      value={(i) => (
        <>
          p95 <Duration ns={lines[1]?.values?.[i]} />{" "}
          <span className="meta">
            p50 <Duration ns={lines[0]?.values?.[i]} />
          </span>
        </>
      )}
    />
  );
}
