// Who may do what: users, their permissions in each space, and the spaces.

import { useNavigate, useSearch } from "@tanstack/react-router";
import { PageHead } from "../../frame/PageHead";
import { QueryField } from "../../parts/QueryBar";
import { Segments } from "../../parts/Segments";
import { Permissions } from "./Permissions";
import { Spaces } from "./Spaces";
import { type Change, NEW } from "./search";
import { Topics } from "./Topics";
import { Users } from "./Users";

const TABS = [
  ["users", "Users"],
  ["permissions", "Permissions"],
  ["topics", "Topics"],
  ["spaces", "Spaces"],
] as const;
const ONE = { users: "user", permissions: "permission", topics: "topic permission", spaces: "space" } as const;

export function AccessPage() {
  const search = useSearch({ from: "/access" });
  const navigate = useNavigate({ from: "/access" });
  const change: Change = (next, replace = false) => void navigate({ search: (s) => ({ ...s, ...next }), replace });
  const tab = search.tab ?? "users";
  const own = { search, change };
  return (
    <div className="page-rows">
      <PageHead
        title="Access"
        actions={
          <button type="button" className="btn" onClick={() => change({ open: NEW })}>
            New {ONE[tab]}
          </button>
        }
      />
      <div className="query tabbed">
        <Segments
          label="What"
          value={tab}
          options={TABS}
          onChange={(v) =>
            change({ tab: v === "users" ? undefined : v, q: undefined, sort: undefined, open: undefined })
          }
        />
        <QueryField
          plain
          value={search.q ?? ""}
          onChange={(q, replace) => change({ q: q || undefined }, replace)}
          placeholder={`Filter ${tab === "topics" ? "topic permissions" : tab}`}
          maxWidth={420}
        />
      </div>
      {tab === "users" ? <Users {...own} /> : null}
      {tab === "permissions" ? <Permissions {...own} /> : null}
      {tab === "topics" ? <Topics {...own} /> : null}
      {tab === "spaces" ? <Spaces {...own} /> : null}
    </div>
  );
}
