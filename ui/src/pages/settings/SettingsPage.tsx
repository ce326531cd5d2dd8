// What this browser remembers, and where reactor listens.

import { useMemo } from "react";
import type { Door } from "../../api/types";
import { PageHead } from "../../frame/PageHead";
import { chooseTheme, themeChoice } from "../../frame/theme";
import { useChannel, useOverview, useStore } from "../../live/hooks";
import { Bytes } from "../../parts/Bytes";
import { Region } from "../../parts/Region";
import { Segments } from "../../parts/Segments";
import { Facts } from "../../parts/SidePanel";
import { Since } from "../../parts/Time";
import { chooseZone, useZone } from "../../parts/zone";
import { defaultLength } from "../../time/defaults";
import { doorsByName } from "../overview/doors";
import { Doors, ShellBlock } from "../overview/EmptyOverview";
import "../overview/empty.css";
import "./settings.css";

export function SettingsPage() {
  const { values } = useChannel<Door>("doors");
  const doors = useMemo(() => doorsByName(values), [values]);
  return (
    <div className="settings">
      <PageHead title="Settings" />
      <div>
        <ThisBrowser />
        <About />
      </div>
      <div className="line-left">
        <Doors doors={doors} />
        <ShellBlock />
      </div>
    </div>
  );
}

function ThisBrowser() {
  const theme = useStore(themeChoice);
  const zone = useZone();
  const length = useStore(defaultLength.store);
  return (
    <Region title="This browser" className="region-grows">
      <div className="setting">
        <span>Theme</span>
        <Segments
          label="Theme"
          value={theme}
          options={[
            ["system", "System"],
            ["dark", "Dark"],
            ["light", "Light"],
          ]}
          onChange={chooseTheme}
        />
        <span className="meta">
          <kbd>⇧T</kbd> switches
        </span>
      </div>
      <div className="setting">
        <span>Times</span>
        <Segments
          label="Times"
          value={zone}
          options={[
            ["local", "Local"],
            ["utc", "UTC"],
          ]}
          onChange={chooseZone}
        />
        <span className="meta">{Intl.DateTimeFormat().resolvedOptions().timeZone}</span>
      </div>
      <div className="setting">
        <span>Range at the start</span>
        <Segments
          label="Range at the start"
          value={length}
          options={[
            ["5m", "5 min"],
            ["15m", "15 min"],
            ["1h", "1 h"],
          ]}
          onChange={defaultLength.choose}
        />
      </div>
    </Region>
  );
}

function About() {
  const o = useOverview();
  return (
    <Region title="reactor" className="region-grows line-top">
      <Facts
        plain
        rows={[
          o.version ? ["Version", o.version] : null,
          o.started_us ? ["Up for", <Since key="u" at={o.started_us} />] : null,
          o.message_storage
            ? ["Messages", o.message_storage === "memory" ? "in memory, not on disk" : "on disk"]
            : null,
          o.telemetry
            ? [
                "Telemetry",
                <span key="t">
                  <Bytes value={o.telemetry.bytes} /> of <Bytes value={o.telemetry.bytes_max} />, in memory
                </span>,
              ]
            : null,
          o.spaces
            ? [
                "Spaces",
                <span key="s" className="mono">
                  {o.spaces.join(", ")}
                </span>,
              ]
            : null,
          [
            "API",
            <a key="a" className="link" href="/api/v1/openapi.json">
              /api/v1/openapi.json
            </a>,
          ],
        ]}
      />
      <p className="note meta">
        How reactor itself runs (ports, directories, limits, services) stands in{" "}
        <span className="mono">reactor.toml</span>; <span className="mono">reactor init</span> writes an annotated one.
      </p>
    </Region>
  );
}
