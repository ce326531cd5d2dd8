// One chart of the board: an instrument's series, grouped as the reader says, with a legend that is its value table.

import { useMemo, useState } from "react";
import type { Instrument } from "../../api/types";
import { slotOf } from "../../live/slots";
import { axisBytes, axisDuration, axisNumber, axisShare } from "../../parts/axis";
import { Bytes } from "../../parts/Bytes";
import { ChartView } from "../../parts/ChartView";
import { Icon } from "../../parts/Icon";
import { Menu } from "../../parts/Menu";
import { Num } from "../../parts/Num";
import { Fault } from "../../parts/Region";
import { Duration } from "../../parts/Time";
import { type ChartLine, unitFactor, useChartData, useSeries } from "../../time/useSeries";
import { type Card, linesOf, type Unit, unitOf } from "./board";

interface MetricCardProps {
  card: Card;
  instrument: Instrument | null;
  /** Another card in its place; null takes it off the board. */
  change: (card: Card | null) => void;
}

const AXES: Record<Unit, (v: number) => string> = {
  duration: axisDuration,
  bytes: axisBytes,
  share: axisShare,
  number: axisNumber,
};

/** The least an axis reaches to, so that half of it has a label of its own. */
const LEAST: Record<Unit, number> = { duration: 2_000, bytes: 2, share: 0, number: 0 };

export function MetricCard({ card, instrument, change }: MetricCardProps) {
  const group = card.group ?? (instrument && instrument.services.length > 1 ? "service" : undefined);
  const { answer, problem } = useSeries({ name: card.name, service: card.service, group });
  const unit = unitOf(answer?.unit ?? instrument?.unit ?? "");
  const factor = unitFactor(answer?.unit ?? "");
  const drawn = useMemo(() => linesOf(answer?.series ?? []), [answer]);
  const lines = useMemo<ChartLine[]>(() => {
    const scaled = (values: readonly (number | null)[]) => values.map((v) => (v === null ? null : v * factor));
    return drawn.map((line, i) => ({
      name: line.label,
      values: scaled(line.values),
      ink: inkOf(line.service, i, drawn.length, group),
      dashed: drawn.length <= 3 && i > 0 && group === undefined,
      area: drawn.length === 1,
      ...(drawn.length === 1 && line.min && line.max ? { min: scaled(line.min), max: scaled(line.max) } : {}),
    }));
  }, [drawn, factor, group]);
  const data = useChartData(answer, lines);
  const [at, setAt] = useState<number | null>(null);
  return (
    <div className="metric-card">
      <div className="metric-tools">
        <Grouping card={card} instrument={instrument} group={group} change={change} />
        <button
          type="button"
          className="btn icon"
          aria-label={`Take ${card.name} off the board`}
          onClick={() => change(null)}
        >
          <Icon name="close" size={12} />
        </button>
      </div>
      <ChartView
        name={card.name}
        data={data}
        height={156}
        left={56}
        axis={AXES[unit]}
        least={LEAST[unit]}
        base1024={unit === "bytes"}
        empty={answer ? "No points in this range" : ""}
        onIndex={setAt}
        value={(i) =>
          drawn.length === 1 ? (
            <Value unit={unit} value={lines[0]?.values?.[i]} rate={answer?.shows === "rate"} />
          ) : null
        }
      />
      {problem && !answer ? <Fault problem={problem} /> : null}
      {drawn.length > 1 ? (
        <ul className="metric-legend">
          {lines.map((line) => (
            <li key={line.name}>
              <i style={{ background: `var(${line.ink})` }} className={line.dashed ? "dashed" : undefined} />
              <span className="cut" title={line.name}>
                {line.name}
              </span>
              <Value unit={unit} value={valueAt(line.values ?? [], at)} rate={answer?.shows === "rate"} />
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  );
}

function valueAt(values: readonly (number | null)[], at: number | null): number | null | undefined {
  if (at !== null) return values[at];
  for (let i = values.length - 1; i >= 0; i -= 1) if (values[i] !== null) return values[i];
  return null;
}

/** Services have their own colours; other groups take the palette in turn; one or two lines are neutral. */
function inkOf(service: string, i: number, of: number, group: string | undefined): string {
  if (group === "service") {
    const slot = slotOf(service);
    return slot ? `--svc-${((slot - 1) % 12) + 1}` : "--chart-2";
  }
  if (of <= 3 && group === undefined) return i === 0 ? "--chart-1" : "--chart-2";
  return `--svc-${(i % 12) + 1}`;
}

function Value({ unit, value, rate }: { unit: Unit; value: number | null | undefined; rate: boolean }) {
  if (unit === "duration") return <Duration ns={value} />;
  if (unit === "bytes") return <Bytes value={value} />;
  if (unit === "share") return <Num value={value} as="share" />;
  return <Num value={value} as={rate ? "rate" : "short"} />;
}

interface GroupingProps extends MetricCardProps {
  group: string | undefined;
}

function Grouping({ card, instrument, group, change }: GroupingProps) {
  const keys = ["service", "instance", ...(instrument?.attributes ?? [])];
  return (
    <Menu
      label="Group by"
      className="btn sm ghost"
      align="right"
      button={group ? `by ${group}` : "Group by"}
      items={keys.map((key) => ({ label: key, on: key === group, run: () => change({ ...card, group: key }) }))}
    />
  );
}
