// Every instrument that sent points, and a board of up to 12 of them over the page's range.

import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Instrument } from "../../api/types";
import { PageHead } from "../../frame/PageHead";
import { count, plural } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { QueryField } from "../../parts/QueryBar";
import { Empty, NoMatch } from "../../parts/Region";
import { useInstruments } from "../../time/useSeries";
import { BOARD_MAX, boardOf, type Card, writeBoard } from "./board";
import { MetricCard } from "./MetricCard";
import "./metrics.css";

const NONE = "none";

export function MetricsPage() {
  const search = useSearch({ from: "/metrics" });
  const navigate = useNavigate({ from: "/metrics" });
  const { list } = useInstruments();
  const cards = useMemo(() => (search.show === NONE ? [] : boardOf(search.show, list)), [search.show, list]);
  const show = (next: readonly Card[]) =>
    void navigate({ search: (s) => ({ ...s, show: next.length > 0 ? writeBoard(next) : NONE }), replace: true });
  const q = (search.q ?? "").toLowerCase();
  const shown = list.filter((i) => `${i.name} ${i.description} ${i.services.join(" ")}`.toLowerCase().includes(q));
  const flip = (name: string) =>
    show(cards.some((c) => c.name === name) ? cards.filter((c) => c.name !== name) : [...cards, { name }]);
  return (
    <div className="metrics">
      <PageHead title="Metrics" meta={list.length > 0 ? plural(list.length, "instrument") : undefined} />
      <section className="region metrics-list line-right" aria-label="Instruments">
        <div className="metrics-find">
          <QueryField
            plain
            value={search.q ?? ""}
            onChange={(text, replace) => void navigate({ search: (s) => ({ ...s, q: text || undefined }), replace })}
            placeholder="Find an instrument"
          />
        </div>
        <ul className="region-body">
          {shown.map((instrument) => (
            <Entry
              key={instrument.name}
              instrument={instrument}
              on={cards.some((c) => c.name === instrument.name)}
              full={cards.length >= BOARD_MAX}
              flip={() => flip(instrument.name)}
            />
          ))}
          {list.length > 0 && shown.length === 0 ? (
            <li>
              <NoMatch where="this filter" outside={null} />
            </li>
          ) : null}
        </ul>
      </section>
      <section className="region-body metrics-board" aria-label="Board">
        {list.length === 0 ? (
          <Empty title="No metrics yet">
            reactor's own counters appear a second after it starts. Services send theirs by OpenTelemetry: set
            OTEL_EXPORTER_OTLP_ENDPOINT to one of the OTLP doors under Settings.
          </Empty>
        ) : null}
        {list.length > 0 && cards.length === 0 ? (
          <Empty title="The board is empty">Choose instruments at the left, up to 12.</Empty>
        ) : null}
        {cards.map((card, i) => (
          <MetricCard
            key={`${card.name} ${card.service ?? ""}`}
            card={card}
            instrument={list.find((x) => x.name === card.name) ?? null}
            change={(next) => show(next ? cards.with(i, next) : cards.filter((_, at) => at !== i))}
          />
        ))}
      </section>
    </div>
  );
}

const KINDS: Record<Instrument["kind"], string> = {
  gauge: "gauge",
  counter: "counter",
  up_down_counter: "level",
  histogram: "histogram",
  summary: "summary",
};

function Entry({
  instrument,
  on,
  full,
  flip,
}: {
  instrument: Instrument;
  on: boolean;
  full: boolean;
  flip: () => void;
}) {
  const { name, description, services, series, unit, kind } = instrument;
  return (
    <li>
      <button
        type="button"
        className={`metrics-entry${on ? " on" : ""}`}
        aria-pressed={on}
        disabled={!on && full}
        title={[description, `${kind}${unit ? `, ${unit}` : ""}`, services.join(", ")].filter(Boolean).join("\n")}
        onClick={flip}
      >
        <span className="mono cut">{name}</span>
        {on ? <Icon name="done" size={12} /> : null}
        <span className="meta cut">
          {KINDS[kind]}, {services.join(", ")}
        </span>
        <span className="meta">{series > 1 ? count(series) : ""}</span>
      </button>
    </li>
  );
}
