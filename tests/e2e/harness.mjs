// Starts the real binary on free ports and a real browser; everything is killed when the test file ends.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { AxeBuilder } from "@axe-core/playwright";
import { chromium } from "playwright-core";

export const root = resolve(import.meta.dirname, "../..");
const binary = process.env.REACTOR_BIN ?? join(root, "target/release/reactor");
const pictures = process.env.E2E_PICTURES;
const PORTS = ["HTTP", "HTTPS", "INGRESS", "CONTROL", "BUS", "AMQP", "AMQPS", "OTLP_GRPC", "OTLP_HTTP", "MANAGEMENT", "PROMETHEUS"];

/** Resolves with the first truthy answer of `condition`, asked again until `deadline_ms` have passed. */
export async function waitUntil(what, condition, deadline_ms = 20_000) {
  const end = Date.now() + deadline_ms;
  let cause;
  for (;;) {
    const answer = await condition().catch((error) => {
      cause = error;
    });
    if (answer) return answer;
    if (Date.now() > end) throw new Error(`not within ${deadline_ms} ms: ${what}`, { cause });
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** A running reactor: `control`, `gateway` and `bus` are `host:port`; `stop()` ends it. */
export async function startReactor({ config, env = {} } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "reactor-e2e-"));
  const ports = Object.fromEntries(PORTS.map((name) => [`REACTOR_PORTS_${name}`, "0"]));
  const args = ["up", "--ephemeral", ...(config ? ["-c", config] : [])];
  // Services find the client libraries that the tests installed.
  const path = `${join(root, "target/venv/bin")}:${process.env.PATH}`;
  const child = spawn(binary, args, {
    cwd: folder,
    env: { ...process.env, ...ports, PATH: path, NODE_PATH: join(root, "target/clients/node_modules"), NO_COLOR: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => (output += bytes));
  await waitUntil("Server startup complete", async () => {
    if (child.exitCode !== null) throw new Error("exited");
    return output.includes("Server startup complete");
  }).catch((error) => {
    throw new Error(`${error.message}\n${output}`);
  });
  const control = /dashboard\s+http:\/\/(\S+?)\/?(\?\S*)?\s/i.exec(output)?.[1];
  if (!control) throw new Error(`no dashboard address in the start block:\n${output}`);
  const doors = await (await fetch(`http://${control}/api/v1/ports`)).json();
  const address = (name) => {
    const door = doors.find((door) => door.name === name);
    const port = door?.address?.split(":").at(-1);
    return port && `localhost:${port}`;
  };
  return {
    control,
    folder,
    address,
    output: () => output,
    pid: child.pid,
    api: async (path, init) => {
      const answer = await fetch(`http://${control}/api/v1/${path}`, init);
      if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
      const text = await answer.text();
      return text ? JSON.parse(text) : null;
    },
    async stop() {
      if (child.exitCode === null) {
        child.kill("SIGTERM");
        const timer = setTimeout(() => child.kill("SIGKILL"), 15_000);
        await once(child, "exit");
        clearTimeout(timer);
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function startBrowser() {
  const profile = mkdtempSync(join(tmpdir(), "reactor-chromium-"));
  const browser = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
    viewport: { width: 1440, height: 900 },
  });
  return {
    browser,
    /** A page that fails the test on any error the browser reports. */
    async page(url, { width = 1440, height = 900, theme = "dark" } = {}) {
      const page = await browser.newPage();
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme: theme });
      const errors = [];
      page.on("pageerror", (error) => errors.push(String(error)));
      page.on("console", (message) => {
        if (message.type() === "error" && !/Failed to load resource/.test(message.text())) errors.push(message.text());
      });
      page.errors = errors;
      await page.goto(url);
      return page;
    },
    async stop() {
      await browser.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

/** Serious and critical findings of axe, one line each. */
export async function axe(page) {
  const { violations } = await new AxeBuilder({ page }).analyze();
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(" ")).join(", ")}`);
}

/** Clock times, tabs and buttons that do not fit where they stand: what has no rest to read elsewhere. */
export function cutTimesAndTabs(page) {
  return page.evaluate(() => {
    const cut = (node) => {
      const box = node.getBoundingClientRect();
      for (let above = node.parentElement; above; above = above.parentElement) {
        if (getComputedStyle(above).overflowX === "visible") continue;
        if (box.right > above.getBoundingClientRect().right + 1) return true;
      }
      return false;
    };
    const shown = [...document.querySelectorAll("table time, .segments button, .btn")].filter((node) => node.offsetWidth > 0);
    return shown.filter(cut).map((node) => node.textContent);
  });
}

/** Keeps a screenshot when E2E_PICTURES names a folder. */
export async function picture(page, name) {
  if (!pictures) return;
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: join(pictures, `${name}.png`) });
}
