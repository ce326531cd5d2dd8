import "./style/fonts.css";
import "./style/tokens.css";
import "./style/base.css";
import "./style/controls.css";
import "./style/tape.css";
import "./style/region.css";
import "./style/panel.css";
import "./style/query.css";
import "./style/table.css";
import "./style/marks.css";
import "./style/floating.css";
import "./style/form.css";
import "./style/snippet.css";
import "./style/chart.css";
import "./style/frame.css";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "./api/client";
import { feed } from "./live/feed";
import { router } from "./router";
import { defaultLength } from "./time/defaults";

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // A refusal is an answer; only a lost connection is worth another try.
      retry: (failures, error) => failures < 2 && error instanceof ApiError && error.problem.status === 0,
      staleTime: 1000,
      refetchOnWindowFocus: false,
    },
  },
});

// A new tab begins with the range this browser prefers; a link keeps its own.
const preferred = defaultLength.store.get();
const params = new URLSearchParams(location.search);
if (preferred !== "15m" && !params.has("last") && !params.has("from")) {
  params.set("last", preferred);
  router.history.replace(`${location.pathname}?${params}${location.hash}`);
}

const worker = new Worker(new URL("./live/worker.ts", import.meta.url), { type: "module", name: "live" });
const scheme = location.protocol === "https:" ? "wss" : "ws";
feed.start(worker, `${scheme}://${location.host}/api/v1/live`);

createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
