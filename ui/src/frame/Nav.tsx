import { Link } from "@tanstack/react-router";
import { useOverview, useStore } from "../live/hooks";
import { errorsRead, unreadErrors } from "../live/unread";
import { count } from "../parts/format";
import { Icon, Logo } from "../parts/Icon";
import { GROUPS, type PageEntry } from "./pages";
import { switchTheme } from "./theme";

export function Nav({ collapsed }: { collapsed: boolean }) {
  return (
    <nav className="nav" aria-label="Pages">
      <Link to="/" className="brand" aria-label="reactor, overview">
        <Logo />
        <span>reactor</span>
      </Link>
      {GROUPS.map((group) => (
        <div key={group.name ?? "first"}>
          {group.name ? <h2>{group.name}</h2> : null}
          <ul>
            {group.pages.map((page) => (
              <li key={page.to}>
                <NavItem page={page} collapsed={collapsed} />
              </li>
            ))}
          </ul>
        </div>
      ))}
      <span className="grow" />
      <button type="button" className="nav-item" onClick={switchTheme} title="Switch theme (Shift T)">
        <Icon name="sun" />
        <span>Theme</span>
        <b>
          <kbd>⇧T</kbd>
        </b>
      </button>
    </nav>
  );
}

function NavItem({ page, collapsed }: { page: PageEntry; collapsed: boolean }) {
  const figure = useFigure(page.to);
  return (
    <Link
      to={page.to}
      className="nav-item"
      activeProps={{ className: "on" }}
      activeOptions={{ exact: page.to === "/", includeSearch: false }}
      title={collapsed ? page.name : undefined}
    >
      <Icon name={page.icon} />
      <span>{page.name}</span>
      {figure ? <b className={figure.tone}>{figure.text}</b> : null}
    </Link>
  );
}

/** Counts at the right; red for unread errors only. */
export function useFigure(to: PageEntry["to"]): { text: string; tone: string | undefined } | null {
  const { services, queues, errors_unread, started_us } = useOverview();
  const unread = unreadErrors(useStore(errorsRead), started_us, errors_unread);
  if (to === "/services" && services !== undefined) return { text: count(services), tone: undefined };
  if (to === "/queues" && queues !== undefined) return { text: count(queues), tone: undefined };
  if (to === "/logs" && unread > 0) return { text: count(unread), tone: "err" };
  return null;
}

export function TabBar() {
  const errors = useFigure("/logs");
  const tabs = [
    { to: "/", name: "Overview", icon: "overview" },
    { to: "/traces", name: "Traces", icon: "traces" },
    { to: "/logs", name: "Logs", icon: "logs" },
    { to: "/services", name: "Services", icon: "services" },
    { to: "/more", name: "More", icon: "more" },
  ] as const;
  return (
    <nav className="tabbar" aria-label="Pages">
      {tabs.map((tab) => (
        <Link
          key={tab.to}
          to={tab.to}
          activeProps={{ className: "on" }}
          activeOptions={{ exact: tab.to === "/", includeSearch: false }}
        >
          <Icon name={tab.icon} size={18} />
          {tab.name}
          {tab.to === "/logs" && errors ? (
            <em>
              <span className="hidden">
                {errors.text} unread {errors.text === "1" ? "error" : "errors"}
              </span>
            </em>
          ) : null}
        </Link>
      ))}
    </nav>
  );
}
