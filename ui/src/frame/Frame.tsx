// The frame around every page (ui.md §3): navigation, top bar, tape, content, ledger; below 720 px a bottom bar.

import { Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { caps } from "../keys/keys";
import { useKeyListener, useKeys } from "../keys/useKeys";
import { useLink, useOverview, useStore } from "../live/hooks";
import { paused } from "../live/pause";
import { markErrorsRead } from "../live/unread";
import { Icon, Logo } from "../parts/Icon";
import { Menu } from "../parts/Menu";
import { useSpace } from "../time/useRange";
import { Announcer } from "./Announcer";
import { KeyOverlay } from "./KeyOverlay";
import { Ledger } from "./Ledger";
import { Nav, TabBar } from "./Nav";
import { BarContext } from "./PageHead";
import { Palette } from "./Palette";
import { PAGES } from "./pages";
import { Tape } from "./Tape";
import { switchTheme } from "./theme";

const COLLAPSED_KEY = "reactor.nav";

const medium = matchMedia("(max-width: 1099px)");
const mediumNow = {
  get: () => medium.matches,
  subscribe: (f: () => void) => {
    medium.addEventListener("change", f);
    return () => medium.removeEventListener("change", f);
  },
};

/** The reader's choice; below 1100 px there is none. */
function useCollapsed(): [boolean, () => void] {
  const narrow = useStore(mediumNow);
  const [collapsed, setCollapsed] = useState(() => localStorage.getItem(COLLAPSED_KEY) === "collapsed");
  const toggle = () => {
    setCollapsed(!collapsed);
    localStorage.setItem(COLLAPSED_KEY, collapsed ? "open" : "collapsed");
  };
  return [collapsed || narrow, toggle];
}

/** Pages without a time axis of their own. */
const TAPELESS = new Set(["/settings", "/more"]);

type Overlay = "palette" | "keys" | null;

/** Keys that work everywhere. */
function useFrameKeys(setOverlay: (overlay: Overlay) => void, toggleNav: () => void): void {
  const navigate = useNavigate();
  useKeyListener();
  useKeys([
    { keys: "Ctrl K", does: "Go to or run", run: () => setOverlay("palette"), inFields: true },
    { keys: "?", does: "All keys of this page", run: () => setOverlay("keys") },
    { keys: "Shift T", does: "Switch theme", run: switchTheme },
    { keys: "p", does: "Pause, resume", run: () => paused.toggle() },
    { keys: "End", does: "Live end", run: () => paused.resume() },
    { keys: "[", does: "Collapse navigation", run: toggleNav },
    { keys: "y", does: "Copy link", run: () => void navigator.clipboard?.writeText(location.href) },
    ...PAGES.filter((page) => page.key).map((page) => ({
      keys: `g ${page.key}`,
      does: page.name,
      run: () => void navigate({ to: page.to }),
    })),
    { keys: "g s", does: "Logs", silent: true, run: () => void navigate({ to: "/logs" }) },
    { keys: "g c", does: "Console", run: () => void navigate({ to: "/services" }) },
  ]);
}

/** Looking at the logs reads the errors. */
function useErrorsRead(path: string): void {
  const { errors_unread, started_us } = useOverview();
  useEffect(() => {
    if (path === "/logs" && errors_unread !== undefined && started_us !== undefined)
      markErrorsRead(started_us, errors_unread);
  }, [path, errors_unread, started_us]);
}

export function Frame() {
  const [title, setTitle] = useState<HTMLElement | null>(null);
  const [actions, setActions] = useState<HTMLElement | null>(null);
  const slots = useMemo(() => ({ title, actions }), [title, actions]);
  const [collapsed, toggleNav] = useCollapsed();
  const [overlay, setOverlay] = useState<Overlay>(null);
  const link = useLink();
  const path = useRouterState({ select: (s) => s.location.pathname });
  const tapeless = TAPELESS.has(path);
  useErrorsRead(path);
  useFrameKeys(setOverlay, toggleNav);
  return (
    <BarContext value={slots}>
      <div
        className={`app${collapsed ? " nav-collapsed" : ""}${link.state === "lost" ? " lost" : ""}${tapeless ? " no-tape" : ""}`}
      >
        <a className="skip" href="#content">
          Skip to content
        </a>
        <header className="bar">
          <span className="narrow-only">
            <Logo size={22} />
          </span>
          <div className="bar-title" ref={setTitle} />
          <span className="grow" />
          <div className="bar-actions" ref={setActions} />
          <button type="button" className="btn find wide-only" onClick={() => setOverlay("palette")}>
            <Icon name="search" size={14} />
            <span>Go to or run</span>
            <kbd>{caps("Ctrl K")}</kbd>
          </button>
          <span className="wide-only">
            <SpacePicker />
          </span>
          <button
            type="button"
            className="btn ghost narrow-only touch"
            aria-label="Go to or run"
            onClick={() => setOverlay("palette")}
          >
            <Icon name="search" size={18} />
          </button>
        </header>
        {tapeless ? null : <Tape />}
        <main className="main" id="content" tabIndex={-1}>
          <Outlet />
        </main>
        <Nav collapsed={collapsed} />
        <Ledger />
        <TabBar />
        <Announcer />
      </div>
      {overlay === "palette" ? <Palette close={() => setOverlay(null)} /> : null}
      {overlay === "keys" ? <KeyOverlay close={() => setOverlay(null)} /> : null}
    </BarContext>
  );
}

export function SpacePicker() {
  const space = useSpace();
  const { spaces = [space] } = useOverview();
  const navigate = useNavigate();
  return (
    <Menu
      label="Space"
      align="right"
      button={
        <>
          Space <b className="strong">{space}</b> <Icon name="down" size={12} />
        </>
      }
      items={spaces.map((name) => ({
        label: name,
        on: name === space,
        run: () =>
          void navigate({
            to: ".",
            search: (s: object) => ({ ...s, space: name === "/" ? undefined : name }),
          } as never),
      }))}
    />
  );
}
