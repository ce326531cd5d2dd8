// The shop example under its load: every page in both themes and widths, with real data, by mouse and by keyboard.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { axe, cutTimesAndTabs, picture, root, startBrowser, startReactor, waitUntil } from "./harness.mjs";

let reactor;
let chrome;
let base;
before(async () => {
  [reactor, chrome] = await Promise.all([
    startReactor({
      config: join(root, "assets/examples/shop/reactor.toml"),
      env: { PYTHON: join(root, "target/venv/bin/python") },
    }),
    startBrowser(),
  ]);
  base = `http://${reactor.control}`;
  await waitUntil(
    "orders went all the way to a worker",
    async () => (await reactor.api("traces?query=service:worker")).rows.length > 5,
    60_000,
  );
});
after(async () => {
  await chrome?.stop();
  await reactor?.stop();
});

const PAGES = {
  overview: ["/", (page) => page.getByRole("region", { name: "Traffic" }).getByText("worker.orders").first()],
  services: ["/services", (page) => page.getByRole("row", { name: /payments/ }).first()],
  queues: ["/queues", (page) => page.getByRole("row", { name: /worker\.orders/ }).first()],
  queue: ["/queues/%2F/worker.orders", (page) => page.getByText(/not on disk/i).first()],
  logs: ["/logs", (page) => page.getByRole("grid").getByRole("row").nth(5)],
  traces: ["/traces", (page) => page.getByRole("row", { name: /POST \/orders/ }).first()],
  metrics: ["/metrics", (page) => page.getByRole("button", { name: /reactor\.messages\.published/ }).first()],
  changes: ["/changes", (page) => page.getByRole("row").nth(2)],
  settings: ["/settings", (page) => page.getByRole("heading", { name: "Settings" }).first()],
};

describe("every page", () => {
  for (const theme of ["dark", "light"])
    for (const [name, [path, ready]] of Object.entries(PAGES))
      test(`${name} shows the shop in ${theme}, without an error and with nothing serious for axe`, async () => {
        const page = await chrome.page(base + path, { theme });
        await ready(page).waitFor();
        await picture(page, `${name}-${theme}`);
        assert.deepEqual(await axe(page), []);
        assert.deepEqual(page.errors, []);
        await page.close();
      });

  for (const [name, [path]] of Object.entries(PAGES))
    test(`${name} fits a narrow screen without sideways scrolling`, async () => {
      const page = await chrome.page(base + path, { width: 390, height: 844 });
      await page.getByRole("navigation").first().waitFor();
      await waitUntil("the page has settled", async () => (await page.locator("main").innerText()).length > 20);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      assert.equal(overflow, 0);
      assert.deepEqual(await cutTimesAndTabs(page), []);
      await picture(page, `${name}-narrow`);
      assert.deepEqual(page.errors, []);
      await page.close();
    });
});

test("on a narrow screen the panel of a row is the whole page, and a trace is listed by its path", async () => {
  const page = await chrome.page(`${base}/logs`, { width: 390, height: 844 });
  const panel = page.getByRole("complementary").last();
  const isWhole = async () => (await panel.boundingBox())?.width === 390;
  await page.getByRole("grid").getByRole("row").nth(3).click();
  await waitUntil("the record's panel is the page", isWhole);
  await page.goto(`${base}/traces`);
  await page.getByRole("row", { name: /GET \/catalog\/products/ }).first().click();
  await waitUntil("the trace's panel is the page", isWhole);
  await picture(page, "trace-panel-narrow");
  assert.deepEqual(page.errors, []);
  await page.close();
});

test("what changed yesterday stands in one line each", async () => {
  const page = await chrome.page("about:blank");
  // Of this page alone: the browser's own clock would be that of every page after it.
  await page.addInitScript(() => {
    const now = Date.now;
    Date.now = () => now() + 24 * 3_600_000;
  });
  await page.goto(`${base}/`);
  const line = page.locator(".changed li", { hasText: /\d+ [A-Z][a-z]+ \d\d:\d\d/ }).first();
  assert.ok(((await line.boundingBox())?.height ?? 99) < 30);
  await page.close();
});

test("the keyboard goes everywhere, and Back restores filter and selection", async () => {
  const page = await chrome.page(`${base}/`);
  await PAGES.overview[1](page).waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("l");
  await page.waitForURL(/\/logs/);
  await PAGES.logs[1](page).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("service:orders ");
  await page.waitForURL(/q=service/);
  await waitUntil("only rows of orders", async () => {
    const services = await page.locator(".rows-sizer .log-service").allInnerTexts();
    return services.length > 0 && services.every((one) => one === "orders");
  });
  await page.keyboard.press("Escape");
  await page.keyboard.press("k");
  await page.getByRole("complementary", { name: "Log row" }).waitFor();
  const place = page.url();
  assert.match(place, /row=\d+/);
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await page.waitForURL(/\/traces/);
  await page.goBack();
  await page.getByRole("complementary", { name: "Log row" }).waitFor();
  assert.equal(page.url(), place);
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.type("queues");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/queues/);
  assert.deepEqual(page.errors, []);
  await page.close();
});

test("a mistake in a filter is pointed at", async () => {
  const page = await chrome.page(`${base}/logs?q=${encodeURIComponent("severity>=")}`);
  await page.getByRole("alert").first().waitFor();
  await page.close();
});

test("a log row leads to its trace, and the trace to its span", async () => {
  const { rows } = await reactor.api("logs?query=service:orders&limit=500");
  const row = rows.findLast((one) => one.trace_id);
  assert.ok(row, "a record of orders carries its trace id");
  const page = await chrome.page(`${base}/logs?q=${encodeURIComponent(`trace:${row.trace_id}`)}&row=${row.seq}`);
  await page.getByRole("complementary", { name: "Log row" }).getByRole("link", { name: /^Trace/ }).click();
  await page.waitForURL(/\/traces\/[0-9a-f]{32}/);
  await page.getByRole("treegrid", { name: "Spans" }).waitFor();
  await page.keyboard.press("j");
  await page.getByRole("complementary", { name: /^Span / }).waitFor();
  await picture(page, "trace-dark");
  assert.deepEqual(await axe(page), []);
  await page.keyboard.press("Escape");
  assert.deepEqual(page.errors, []);
  await page.close();
});

test("a list holds still while it is read and says exactly how much is new", async () => {
  const page = await chrome.page(`${base}/logs`);
  await PAGES.logs[1](page).waitFor();
  await page.locator(".rows-sizer .log-row").nth(8).click();
  await page.getByRole("complementary", { name: "Log row" }).waitFor();
  const before = await page.locator(".rows-sizer .log-row.on").boundingBox();
  const pill = page.locator(".live.paused");
  await waitUntil("new rows are counted", async () => /[1-9]\d* new/.test(await pill.innerText()));
  const now = await page.locator(".rows-sizer .log-row.on").boundingBox();
  assert.equal(now.y, before.y);
  await page.keyboard.press("Escape");
  await page.keyboard.press("End");
  await page.locator(".live:not(.paused)").waitFor();
  await page.close();
});

test("a service is stopped and started from its page, and the change is listed", async () => {
  const page = await chrome.page(`${base}/services?service=mailer`);
  await page.getByRole("row", { name: /mailer/ }).first().waitFor();
  await reactor.api("services/mailer/stop", { method: "POST" });
  await waitUntil("mailer is stopped", async () =>
    /stopped/i.test(await page.getByRole("row", { name: /mailer/ }).first().innerText()),
  );
  await reactor.api("services/mailer/start", { method: "POST" });
  await waitUntil("mailer is ready again", async () =>
    /ready/i.test(await page.getByRole("row", { name: /mailer/ }).first().innerText()),
  );
  await page.goto(`${base}/changes`);
  await page.getByText(/mailer-1 ready/).first().waitFor();
  assert.deepEqual(page.errors, []);
  await page.close();
});

test("the dashboard says that it lost reactor, and goes on when it is back", async () => {
  const page = await chrome.page(`${base}/logs`);
  await PAGES.logs[1](page).waitFor();
  process.kill(reactor.pid, "SIGSTOP");
  try {
    await page.locator(".live.lost").waitFor({ timeout: 30_000 });
  } finally {
    process.kill(reactor.pid, "SIGCONT");
  }
  await page.locator(".live:not(.lost)").waitFor({ timeout: 30_000 });
  await page.close();
});

test("a page left open under load keeps a small heap and no long task over half a second", async () => {
  const page = await chrome.page(`${base}/logs`);
  await PAGES.logs[1](page).waitFor();
  await page.evaluate(() => {
    window.longTasks = [];
    new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((e) => e.duration))).observe({ type: "longtask" });
  });
  const received = async () => (await reactor.api("overview")).telemetry.logs.received;
  const start = await received();
  await waitUntil("two hundred more records", async () => (await received()) > start + 200, 60_000);
  const { heap, longest } = await page.evaluate(() => ({
    heap: performance.memory.usedJSHeapSize,
    longest: Math.max(0, ...window.longTasks),
  }));
  assert.ok(heap < 250e6, `heap ${heap}`);
  assert.ok(longest < 500, `long task ${longest} ms`);
  await page.close();
});
