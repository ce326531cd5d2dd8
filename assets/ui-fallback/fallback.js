// The page of a binary without the dashboard: reads the overview once a second. No bundle, no framework.
const byId = (id) => document.getElementById(id);
const number = new Intl.NumberFormat();

function rows(table, entries) {
  const body = table.tBodies[0];
  body.replaceChildren(...entries.map((cells) => {
    const row = document.createElement("tr");
    for (const text of cells) row.insertCell().textContent = text;
    return row;
  }));
}

function ledger(name, signal) {
  return [name, `${number.format(signal.received)} received, ${number.format(signal.kept)} kept, ` +
    `${number.format(signal.evicted)} evicted, ${number.format(signal.dropped)} dropped`];
}

async function read(path) {
  const answer = await fetch(path, { headers: { accept: "application/json" } });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.detail ?? answer.statusText);
  return body;
}

async function tick() {
  try {
    const [now, services] = await Promise.all([read("/api/v1/overview"), read("/api/v1/services")]);
    rows(byId("overview"), [
      ["version", now.version],
      ["running since", new Date(now.started_us / 1000).toLocaleString()],
      ["memory", `${number.format(Math.round(now.memory_bytes / 1048576))} MiB`],
      ["messages kept in", now.message_storage === "disk" ? "disk" : "memory, not on disk"],
      ["connections", number.format(now.connections)],
      ["queues", number.format(now.queues)],
      ledger("spans", now.telemetry.spans),
      ledger("logs", now.telemetry.logs),
      ledger("metric points", now.telemetry.points),
    ]);
    rows(byId("services"), services.length === 0
      ? [["none yet", "bind a queue to the exchange reactor.call with the key NAME.# and consume it"]]
      : services.map((service) => [service.name, service.state, service.route ?? "", service.reason]));
    byId("state").textContent = "live";
    byId("state").className = "";
  } catch (error) {
    byId("state").textContent = `no answer: ${error.message}`;
    byId("state").className = "gone";
  }
  setTimeout(tick, 1000);
}
tick();
