// A new user's first minute: an empty dashboard that teaches, the snippet run as it stands, the answer, its trace.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { axe, picture, root, startBrowser, startReactor, waitUntil } from "./harness.mjs";

let reactor;
let chrome;
before(async () => {
  [reactor, chrome] = await Promise.all([startReactor(), startBrowser()]);
});
after(async () => {
  await chrome?.stop();
  await reactor?.stop();
});

test("the empty dashboard teaches, and becomes the overview when the first service attaches", async () => {
  const page = await chrome.page(`http://${reactor.control}/`);
  await page.getByRole("heading", { level: 1 }).first().waitFor();
  const snippet = (await reactor.api("snippets")).find((one) => /python/i.test(one.language));
  await page.getByText("reactor.call").first().waitFor();
  await picture(page, "empty-dark");
  assert.deepEqual(await axe(page), []);
  await page.setViewportSize({ width: 390, height: 844 });
  const cut = () => [...document.querySelectorAll(".snippet [role=tablist], .steps .command")].filter((e) => e.scrollWidth > e.clientWidth);
  assert.equal(await page.evaluate(`(${cut})().length`), 0, "every language and every command is whole on a phone");
  await page.setViewportSize({ width: 1440, height: 900 });

  const file = join(reactor.folder, snippet.file.split("/").at(-1));
  writeFileSync(file, snippet.text);
  const amqp = reactor.address("amqp");
  const service = spawn(join(root, "target/venv/bin/python"), [file], {
    env: { ...process.env, AMQP_URL: `amqp://guest:guest@${amqp}` },
    stdio: "inherit",
  });
  try {
    const answer = await waitUntil("the greeter answers", async () => {
      const reply = await fetch(`http://${reactor.address("ingress")}/greeter/hello/ann`);
      return reply.ok ? reply.text() : null;
    });
    assert.match(answer, /ann/i);
    // Without a reload: the waiting slot is a node now.
    await page.getByRole("region", { name: "Traffic" }).waitFor();
    await page.getByRole("link", { name: "greeter" }).first().waitFor();
    const trace = await waitUntil("a trace of the request", async () => {
      const { rows } = await reactor.api("traces?query=root:/greeter");
      return rows.find((row) => row.services.includes("greeter") && !row.open);
    });
    await page.goto(`http://${reactor.control}/traces/${trace.trace_id}`);
    await page.getByRole("treegrid", { name: "Spans" }).waitFor();
    await page.getByText("process greeter").first().waitFor();
    assert.deepEqual(page.errors, []);
  } finally {
    service.kill("SIGKILL");
  }
});

test("a foreign site and a rebound name are refused", async () => {
  const foreign = await fetch(`http://${reactor.control}/api/v1/overview`, { headers: { origin: "https://evil.example" } });
  assert.equal(foreign.status, 403);
});
