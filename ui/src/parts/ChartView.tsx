// A chart with its head: the name left; right the newest value, or the one under the shared cursor while one is shown.

import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useRange } from "../time/useRange";
import { Chart, type ChartData, type ChartOptions } from "./chart";

interface ChartViewProps extends Omit<ChartOptions, "onBrush" | "onCursor"> {
  name: string;
  data: ChartData;
  height: 83 | 118 | 156 | 240;
  /** What stands at the right of the head for a bucket; the newest known one when there is no cursor. */
  value: (index: number) => ReactNode;
  /** The bucket under the shared cursor, for whatever stands beside the chart. */
  onIndex?: (index: number | null) => void;
  /** For screen readers; the name is used otherwise. */
  label?: string;
}

function newestIndex(data: ChartData): number {
  const length = data.series[0]?.values.length ?? 0;
  for (let i = length - 1; i >= 0; i -= 1) if (data.series.some((s) => s.values[i] !== null)) return i;
  return length - 1;
}

export function ChartView({ name, data, height, value, label, onIndex, ...options }: ChartViewProps) {
  const host = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | null>(null);
  const [index, setIndex] = useState<number | null>(null);
  const { key } = useRange();
  const navigate = useNavigate();
  const full: ChartOptions = {
    ...options,
    onCursor: (at) => {
      setIndex(at);
      onIndex?.(at);
    },
    onBrush: (from, to) =>
      void navigate({
        to: ".",
        search: (s: object) => ({ ...s, from: Math.round(from / 1000), to: Math.round(to / 1000) }),
      } as never),
  };
  const latest = useRef(full);
  latest.current = full;

  useEffect(() => {
    const made = new Chart(host.current as HTMLDivElement, latest.current);
    chart.current = made;
    return () => made.destroy();
  }, []);
  useEffect(() => {
    chart.current?.setOptions(latest.current);
    chart.current?.set(data, key);
  }, [data, key]);

  return (
    <section className="chart-part" aria-label={label ?? name}>
      <header className="chart-head">
        <h2>{name}</h2>
        <b>{value(index ?? newestIndex(data))}</b>
      </header>
      <div ref={host} role="img" aria-label={label ?? `${name} over time`} style={{ height }} />
    </section>
  );
}
