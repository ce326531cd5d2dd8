// Services: what there is and how it fares, start, stop and restart where reactor owns the process, the start-up, the console.

import { useNavigate, useSearch } from "@tanstack/react-router";
import { useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Service } from "../../api/types";
import { PageHead } from "../../frame/PageHead";
import { useKeys } from "../../keys/useKeys";
import { useServices } from "../../live/hooks";
import { plural } from "../../parts/format";
import { QueryField } from "../../parts/QueryBar";
import { NoMatch, Outlines } from "../../parts/Region";
import { Segments } from "../../parts/Segments";
import { ColumnsMenu } from "../../parts/Table";
import { useSpace } from "../../time/useRange";
import { needsAttention } from "../overview/ServiceList";
import { Console } from "./Console";
import { matches, type ServiceRow } from "./rows";
import { COLUMNS, ServicesTable } from "./ServicesTable";
import { StartUp, useStartup } from "./StartUp";
import type { ServicesSearch } from "./search";
import "./services.css";

export function ServicesPage() {
  const space = useSpace();
  const { list, ready } = useServices(space);
  const search = useSearch({ from: "/services" });
  const navigate = useNavigate({ from: "/services" });
  const change: Change = (next, replace = false) => void navigate({ search: (s) => ({ ...s, ...next }), replace });
  const attention = list.filter(needsAttention);
  const shown = useMemo(() => {
    const base = search.attention ? list.filter(needsAttention) : list;
    return search.q ? base.filter((s) => matches(s, search.q as string)) : base;
  }, [list, search.attention, search.q]);
  const chosen = list.find((s) => s.name === search.service);
  const instances = list.reduce((n, s) => n + s.instances.length, 0);
  const open = (row: ServiceRow) => {
    const again = row.service.name === search.service && (row.instance?.name ?? undefined) === search.instance;
    change(
      again ? { service: undefined, instance: undefined } : { service: row.service.name, instance: row.instance?.name },
    );
  };
  useKeys(
    chosen
      ? [{ keys: "Escape", does: "Close the console", run: () => change({ service: undefined, instance: undefined }) }]
      : [],
  );
  return (
    <div className={`services${chosen ? " chosen" : ""}`}>
      <PageHead
        title="Services"
        meta={ready ? `${plural(list.length, "service")}, ${plural(instances, "instance")}` : undefined}
      />
      <FilterBar search={search} change={change} all={list.length} attention={attention.length} />
      <div className="services-list">
        {!ready ? (
          <Outlines />
        ) : shown.length === 0 ? (
          <NoMatch
            where="this filter"
            outside={list.length > 0 ? `${plural(list.length, "service")} outside it.` : null}
          >
            <button type="button" className="link" onClick={() => change({ q: undefined, attention: undefined })}>
              Show all services
            </button>
          </NoMatch>
        ) : (
          <ServicesTable
            services={shown}
            chosen={search.service}
            instance={search.instance}
            sort={search.sort}
            onSort={(sort) => change({ sort }, true)}
            cols={search.cols}
            onCols={(cols) => change({ cols }, true)}
            onOpen={open}
          />
        )}
      </div>
      <Below service={chosen} fallback={list.find((s) => s.owned)} instance={search.instance} change={change} />
    </div>
  );
}

type Change = (next: Partial<ServicesSearch>, replace?: boolean) => void;

function FilterBar({
  search,
  change,
  all,
  attention,
}: {
  search: ServicesSearch;
  change: Change;
  all: number;
  attention: number;
}) {
  return (
    <div className="query">
      <QueryField
        plain
        value={search.q ?? ""}
        onChange={(q, replace) => change({ q: q || undefined }, replace)}
        placeholder="Filter services"
        maxWidth={420}
      />
      <Segments
        label="Which services"
        value={search.attention ? "attention" : "all"}
        options={[
          ["all", `All ${all}`],
          [
            "attention",
            <span key="a">
              <span className="wide-only">Needs attention</span>
              <span className="narrow-only">Attention</span> {attention}
            </span>,
          ],
        ]}
        onChange={(v) => change({ attention: v === "attention" ? true : undefined }, true)}
      />
      <span className="grow wide-only" />
      <span className="wide-only">
        <ColumnsMenu
          columns={COLUMNS.filter((c) => c.head)}
          cols={search.cols}
          onCols={(cols) => change({ cols }, true)}
        />
      </span>
    </div>
  );
}

interface BelowProps {
  service: Service | undefined;
  /** Shown while nothing is chosen. */
  fallback: Service | undefined;
  instance: string | undefined;
  change: Change;
}

/** Start-up left, console right. */
function Below({ service, fallback, instance, change }: BelowProps) {
  const startup = useStartup();
  const host = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(560);
  useLayoutEffect(() => {
    const node = host.current;
    if (!node) return;
    const observer = new ResizeObserver(() =>
      setWidth(Math.max(320, Math.min(560, Math.round(node.clientWidth * 0.44)))),
    );
    observer.observe(node);
    return () => observer.disconnect();
  }, []);
  const shown = service ?? fallback;
  if (!shown) return null;
  const one = service ? (shown.instances.find((i) => i.name === instance) ?? null) : null;
  return (
    <div
      ref={host}
      className="services-below line-top"
      style={startup ? { gridTemplateColumns: `${width}px minmax(0, 1fr)` } : undefined}
    >
      {startup ? <StartUp startup={startup} width={width - 1} /> : null}
      <Console
        service={shown}
        instance={one}
        onInstance={(name) => change({ service: shown.name, instance: name })}
        close={() => change({ service: undefined, instance: undefined })}
      />
    </div>
  );
}
