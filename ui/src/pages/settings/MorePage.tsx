// On narrow screens: the pages that have no room in the bottom bar, the space, and the ledger.

import { Link } from "@tanstack/react-router";
import { SpacePicker } from "../../frame/Frame";
import { LedgerFacts, SampleNote, Signal } from "../../frame/Ledger";
import { useFigure } from "../../frame/Nav";
import { PageHead } from "../../frame/PageHead";
import { PAGES, type PageEntry } from "../../frame/pages";
import { switchTheme } from "../../frame/theme";
import { useOverview } from "../../live/hooks";
import { Icon } from "../../parts/Icon";
import "./settings.css";

const IN_THE_BAR = new Set(["/", "/traces", "/logs", "/services"]);

export function MorePage() {
  const { telemetry, sample_rate } = useOverview();
  return (
    <div className="more">
      <PageHead title="More" />
      {PAGES.filter((page) => !IN_THE_BAR.has(page.to)).map((page) => (
        <MoreLink key={page.to} page={page} />
      ))}
      <div className="more-space">
        <SpacePicker />
        <button type="button" className="btn" onClick={switchTheme}>
          <Icon name="sun" size={14} /> Theme
        </button>
      </div>
      <div className="more-ledger">
        {telemetry ? (
          <>
            <Signal name="Spans" of={telemetry.spans} />
            <Signal name="Logs" of={telemetry.logs} />
            <Signal name="Points" of={telemetry.points} />
          </>
        ) : null}
        <SampleNote rate={sample_rate} />
        <LedgerFacts />
      </div>
    </div>
  );
}

function MoreLink({ page }: { page: PageEntry }) {
  const figure = useFigure(page.to);
  return (
    <Link to={page.to}>
      <Icon name={page.icon} size={18} />
      {page.name}
      {figure ? <b>{figure.text}</b> : null}
    </Link>
  );
}
