// Three charts of a queue: rate in and out, ready, wait. They share the plot's left edge and the cursor.

import { useMemo } from "react";
import type { Queue } from "../../api/types";
import { axisDuration, axisNumber } from "../../parts/axis";
import { ChartView } from "../../parts/ChartView";
import { Num } from "../../parts/Num";
import { Duration } from "../../parts/Time";
import { quote } from "../../query/tokens";
import { type ChartLine, summed, unitFactor, useChartData, useSeries } from "../../time/useSeries";

const LEFT = 50;
const wish = (name: string, q: Queue) => ({ name, query: `queue:${quote(q.name)} space:${quote(q.space)}` });

export function usePeak(queue: Queue): number | null {
  const { answer } = useSeries(wish("reactor.queue.ready", queue));
  const values =
    answer?.series.flatMap((s) => (s.max.length > 0 ? s.max : s.values)).filter((v): v is number => v !== null) ?? [];
  return values.length === 0 ? null : Math.max(...values);
}

export function QueueCharts({ queue }: { queue: Queue }) {
  return (
    <section className="queue-charts line-top line-bottom" aria-label="Charts">
      <RateChart queue={queue} />
      <ReadyChart queue={queue} />
      <WaitChart queue={queue} />
    </section>
  );
}

function RateChart({ queue }: { queue: Queue }) {
  const published = useSeries(wish("reactor.queue.published", queue)).answer;
  const delivered = useSeries(wish("reactor.queue.delivered", queue)).answer;
  const lines = useMemo<ChartLine[]>(
    () => [
      { name: "in", values: summed(published?.series), ink: "--chart-2", dashed: true },
      { name: "out", values: summed(delivered?.series), ink: "--chart-1" },
    ],
    [published, delivered],
  );
  const data = useChartData(published ?? delivered, lines);
  return (
    <ChartView
      name="Rate"
      data={data}
      height={118}
      left={LEFT}
      least={2}
      axis={axisNumber}
      empty="No messages in this range"
      value={(i) => (
        <>
          <span className="dim">
            in <Num value={lines[0]?.values?.[i]} as="rate" />
          </span>
          {"  "}out <Num value={lines[1]?.values?.[i]} as="rate" />
        </>
      )}
    />
  );
}

function ReadyChart({ queue }: { queue: Queue }) {
  const { answer } = useSeries(wish("reactor.queue.ready", queue));
  const lines = useMemo<ChartLine[]>(
    () => [{ name: "ready", values: summed(answer?.series), ink: "--chart-1", area: true }],
    [answer],
  );
  const data = useChartData(answer, lines);
  return (
    <ChartView
      name="Ready"
      data={data}
      height={118}
      left={LEFT}
      least={4}
      whole
      axis={axisNumber}
      value={(i) => {
        const v = lines[0]?.values?.[i];
        return <Num value={v === null || v === undefined ? v : Math.round(v)} />;
      }}
    />
  );
}

function WaitChart({ queue }: { queue: Queue }) {
  const { answer } = useSeries(wish("reactor.queue.wait", queue));
  const lines = useMemo<ChartLine[]>(() => {
    const factor = unitFactor(answer?.unit ?? "s");
    return [{ name: "wait", values: summed(answer?.series, factor), ink: "--chart-1", area: true }];
  }, [answer]);
  const data = useChartData(answer, lines);
  return (
    <ChartView
      name="Wait p95"
      data={data}
      height={118}
      left={LEFT}
      least={2e6}
      axis={axisDuration}
      empty="Nothing was delivered in this range"
      value={(i) => <Duration ns={lines[0]?.values?.[i]} />}
    />
  );
}
