// Every page and the search parameters it keeps in the URL. The range and the space belong to all of them and stay on navigation.

import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  retainSearchParams,
} from "@tanstack/react-router";
import { Frame } from "./frame/Frame";
import { NotFound } from "./frame/NotFound";
import { PageFault } from "./frame/PageFault";
import { readAccessSearch } from "./pages/access/search";
import { readChangesSearch } from "./pages/changes/search";
import { readLogsSearch } from "./pages/logs/search";
import { readMetricsSearch } from "./pages/metrics/search";
import { readOverviewSearch } from "./pages/overview/search";
import { readConnectionSearch, readExchangeSearch, readQueueSearch, readQueuesSearch } from "./pages/queues/search";
import { readServicesSearch } from "./pages/services/search";
import { readTraceSearch, readTracesSearch } from "./pages/traces/search";
import { amount, text } from "./query/search";
import type { RangeSearch } from "./time/range";

export interface RootSearch extends RangeSearch {
  space?: string | undefined;
}

const root = createRootRoute({
  component: Frame,
  notFoundComponent: NotFound,
  validateSearch: (raw: Record<string, unknown>): RootSearch => ({
    last: text(raw.last),
    end: amount(raw.end),
    from: amount(raw.from),
    to: amount(raw.to),
    space: text(raw.space),
  }),
  search: { middlewares: [retainSearchParams(["last", "end", "from", "to", "space"])] },
});

const overview = createRoute({
  getParentRoute: () => root,
  path: "/",
  validateSearch: readOverviewSearch,
  component: lazyRouteComponent(() => import("./pages/overview/OverviewPage"), "OverviewPage"),
});
const traces = createRoute({
  getParentRoute: () => root,
  path: "/traces",
  validateSearch: readTracesSearch,
  component: lazyRouteComponent(() => import("./pages/traces/TracesPage"), "TracesPage"),
});
const trace = createRoute({
  getParentRoute: () => root,
  path: "/traces/$traceId",
  validateSearch: readTraceSearch,
  component: lazyRouteComponent(() => import("./pages/traces/TracePage"), "TracePage"),
});
const logs = createRoute({
  getParentRoute: () => root,
  path: "/logs",
  validateSearch: readLogsSearch,
  component: lazyRouteComponent(() => import("./pages/logs/LogsPage"), "LogsPage"),
});
const metrics = createRoute({
  getParentRoute: () => root,
  path: "/metrics",
  validateSearch: readMetricsSearch,
  component: lazyRouteComponent(() => import("./pages/metrics/MetricsPage"), "MetricsPage"),
});
const services = createRoute({
  getParentRoute: () => root,
  path: "/services",
  validateSearch: readServicesSearch,
  component: lazyRouteComponent(() => import("./pages/services/ServicesPage"), "ServicesPage"),
});
const queues = createRoute({
  getParentRoute: () => root,
  path: "/queues",
  validateSearch: readQueuesSearch,
  component: lazyRouteComponent(() => import("./pages/queues/QueuesPage"), "QueuesPage"),
});
const queue = createRoute({
  getParentRoute: () => root,
  path: "/queues/$queueSpace/$queueName",
  validateSearch: readQueueSearch,
  component: lazyRouteComponent(() => import("./pages/queues/QueuePage"), "QueuePage"),
});
// A queue's page is two parts below /queues/, these are more behind a `-`: no queue is ever hidden by them.
const exchange = createRoute({
  getParentRoute: () => root,
  path: "/queues/-/exchanges/$exchangeSpace/$exchangeName",
  validateSearch: readExchangeSearch,
  component: lazyRouteComponent(() => import("./pages/queues/ExchangePage"), "ExchangePage"),
});
const connection = createRoute({
  getParentRoute: () => root,
  path: "/queues/-/connections/$connectionId",
  validateSearch: readConnectionSearch,
  component: lazyRouteComponent(() => import("./pages/queues/ConnectionPage"), "ConnectionPage"),
});
const changes = createRoute({
  getParentRoute: () => root,
  path: "/changes",
  validateSearch: readChangesSearch,
  component: lazyRouteComponent(() => import("./pages/changes/ChangesPage"), "ChangesPage"),
});
const access = createRoute({
  getParentRoute: () => root,
  path: "/access",
  validateSearch: readAccessSearch,
  component: lazyRouteComponent(() => import("./pages/access/AccessPage"), "AccessPage"),
});
const settings = createRoute({
  getParentRoute: () => root,
  path: "/settings",
  component: lazyRouteComponent(() => import("./pages/settings/SettingsPage"), "SettingsPage"),
});
const more = createRoute({
  getParentRoute: () => root,
  path: "/more",
  component: lazyRouteComponent(() => import("./pages/settings/MorePage"), "MorePage"),
});

export const router = createRouter({
  routeTree: root.addChildren([
    overview,
    traces,
    trace,
    logs,
    metrics,
    services,
    queues,
    queue,
    exchange,
    connection,
    changes,
    access,
    settings,
    more,
  ]),
  defaultPreload: "intent",
  scrollRestoration: true,
  defaultErrorComponent: PageFault,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
