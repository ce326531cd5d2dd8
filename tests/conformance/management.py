"""Tools that speak the management API: rabbitmqadmin, command by command, and the tests of a strict Rust client."""

import base64
import json
import shutil
import sys
import tempfile
import urllib.request
from pathlib import Path

import report
from broker import Broker
from suites import CACHE, Missing, Suite, keep, patch, shell, source

ADMINS = "lib/rabbitmq/lib/rabbitmq_server-*/plugins/rabbitmq_management-*/priv/www/cli/rabbitmqadmin"


LAG_SECONDS = 10


class Admin:
    """rabbitmqadmin against one broker. Each call is a check: it succeeds, and its output holds what it must."""

    def __init__(self, program: Path, broker: Broker, folder: Path) -> None:
        self.broker, self.folder, self.report, self.log = broker, folder, report.Report(), []
        self.base = [sys.executable, program, "--host=127.0.0.1", f"--port={broker.ports['management']}"]

    def check(self, command: str, *holds: str, name: str = "", fails: bool = False, options: tuple[str, ...] = ()) -> str:
        words = [*options, *command.split(" ")]
        ask = lambda: shell([*self.base, *words], self.folder, {"PYTHONWARNINGS": "ignore"}, 30, check=False)
        # RabbitMQ's counters lag by some seconds.
        lag = LAG_SECONDS if command.startswith("list") else 0
        output = report.settled(ask, lambda output: all(text in output for text in holds), lag)
        missing = [text for text in holds if text not in output]
        self.log.append(f"$ rabbitmqadmin {' '.join(words)}\n{output}")
        # Any refusal is said on a line that begins with `***`; a crash leaves a traceback.
        refused = "\n*** " in f"\n{output}" or "Traceback" in output
        name = name or command
        if refused != fails or missing:
            why = f"lacks {missing}" if missing else "refused" if refused else "was not refused"
            self.report.add(name, "failed", f"{why}: {' '.join(output.split())[-250:]}")
        else:
            self.report.add(name, "passed")
        return output


def everything_it_can(admin: Admin) -> None:
    check = admin.check
    check("show overview", "rabbitmq_version", "cluster_name", "queue_totals.messages")
    check("declare vhost name=shop", "vhost declared")
    check("declare user name=ann password=secret tags=administrator", "user declared")
    check("declare user name=bob password_hash= tags=monitoring", "user declared")
    check("declare permission vhost=shop user=guest configure=.* write=.* read=.*", "permission declared")
    check("declare permission vhost=/ user=ann configure=.* write=.* read=.*", "permission declared")
    check("declare exchange name=orders type=topic", "exchange declared")
    check("declare exchange name=inner type=fanout internal=true durable=false auto_delete=true", "exchange declared")
    check("declare queue name=new durable=true", "queue declared")
    check('declare queue name=temporary durable=false auto_delete=true arguments={"x-max-length":10}', "queue declared")
    check("declare queue name=replicated queue_type=quorum", "queue declared")
    check("declare queue name=new durable=false auto_delete=true", "inequivalent arg", fails=True)
    check("declare queue name=new durable=true", "queue declared", name="declare queue again with the same arguments")
    check("declare binding source=orders destination=new routing_key=order.#", "binding declared")
    check('declare binding source=amq.headers destination=new arguments={"x-match":"any","kind":"a"}', "binding declared")
    check("declare binding source=orders destination=inner destination_type=exchange routing_key=in.#", "binding declared")
    check('declare policy name=short pattern=^short definition={"max-length":5} priority=3 apply-to=queues', "policy declared")
    check('declare operator_policy name=limit pattern=^short definition={"expires":60000} priority=1', "operator_policy declared")
    check("declare vhost_limit vhost=shop name=max-queues value=7", "vhost_limit declared")
    check("publish exchange=orders routing_key=order.created payload=one", "published")
    check('publish routing_key=new payload=two properties={"delivery_mode":2,"headers":{"n":1}}', "published")
    check("publish routing_key=new payload=dGhyZWU= payload_encoding=base64", "published")
    check("publish routing_key=nowhere payload=lost", "NOT routed")
    check("list queues vhost name messages", "| new ", "| 3 ")
    check("get queue=new count=3", "one", "two", "three")
    check("get queue=new ackmode=ack_requeue_false", "one", "order.created")
    check("get queue=new ackmode=reject_requeue_true encoding=base64", "dHdv")
    check("get queue=new payload_file=body", "payload_bytes")
    for what in ("connections", "channels", "consumers", "exchanges", "bindings", "users", "vhosts", "permissions", "nodes"):
        check(f"list {what}", *{"exchanges": ["orders", "topic"], "users": ["ann", "administrator"], "vhosts": ["shop"]}.get(what, []))
    check("list policies", "short", "max-length")
    check("list operator_policies", "limit")
    check("list vhost_limits", "max-queues")
    check("list parameters")
    check("list queues name arguments", "x-max-length", options=("--vhost=/", "--sort=name", "--sort-reverse", "--format=raw_json"))
    check("list bindings source destination properties_key", "order.%23", options=("--format=tsv",))
    for form in ("raw_json", "pretty_json", "long", "kvp", "table", "bash"):
        check("list queues name", "new", options=(f"--format={form}",), name=f"list queues as {form}")
    check("list queues name", "new", options=("--username=ann", "--password=secret"), name="list queues as another user")
    check("list queues", "Access refused", fails=True, options=("--username=ann", "--password=wrong"), name="list queues with a bad password")
    check("export all.json", "Exported definitions")
    exported = json.loads((admin.folder / "all.json").read_text() or "{}") if (admin.folder / "all.json").exists() else {}
    names = {queue["name"] for queue in exported.get("queues", [])}
    admin.report.add("the export names what exists", "passed" if {"new", "replicated"} <= names else "failed", str(sorted(names)))
    check("purge queue name=new", "purged")
    check("list queues name messages", "| new        | 0 ", name="list queues after the purge")
    check("delete binding source=orders destination_type=queue destination=new properties_key=order.%23", "binding deleted")
    check("delete queue name=new", "queue deleted")
    check("delete exchange name=orders", "exchange deleted")
    check("delete queue name=new", "Not found", fails=True, name="delete a queue that is gone")
    check("import all.json", "Uploaded definitions")
    check("list bindings source destination routing_key", "order.#", name="list bindings after the import")
    check("delete policy name=short", "policy deleted")
    check("delete operator_policy name=limit", "operator_policy deleted")
    check("delete vhost_limit vhost=shop name=max-queues", "vhost_limit deleted")
    check("delete permission vhost=shop user=guest", "permission deleted")
    check("delete user name=bob", "user deleted")
    check("delete vhost name=shop", "vhost deleted")
    check("close connection name=nobody", "Not found", fails=True)


def rabbitmqadmin(broker: Broker) -> report.Report:
    found = sorted(Path("/usr").glob(ADMINS))
    if not found:
        raise Missing("rabbitmqadmin comes with Debian's rabbitmq-server")
    folder = Path(tempfile.mkdtemp(prefix="rabbitmqadmin-"))
    try:
        admin = Admin(found[-1], broker, folder)
        everything_it_can(admin)
        keep("rabbitmqadmin", "\n".join(admin.log))
        return admin.report
    finally:
        shutil.rmtree(folder)


def http_api_rs(broker: Broker) -> report.Report:
    suite = SUITES["rabbitmq-http-api-rs"]
    folder = source(suite)
    amqp, http = str(broker.ports["amqp"]), str(broker.ports["management"])
    patch((folder / "tests/integration").glob("*.rs"), (r"\b15672\b", http), (r"\b5672\b", amqp))
    # A runner of tests that they do not need, and that takes longer to build than everything else.
    patch([folder / "Cargo.toml"], (r"cargo-nextest = .*\n", ""))
    # What the repository's own set-up script does with rabbitmqctl.
    vhost = "rust%2Fhttp%2Fapi%2Fclient"
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    put(broker, "/users/rust3", {"password": "rust3", "tags": ""})
    put(broker, "/permissions/%2F/rust3", everything)
    put(broker, f"/vhosts/{vhost}", {})
    put(broker, f"/permissions/{vhost}/guest", everything)
    put(broker, "/cluster-name", {"name": "rabbitmq@localhost"})
    environment = {"CARGO_TARGET_DIR": str(CACHE / "cargo"), "CARGO_TERM_COLOR": "never", "TEST_STATS_DELAY": "1500"}
    tests = ["cargo", "test", "--all-features", "--no-fail-fast", "--test", "integration"]
    if not (folder / "tests/integration/main.rs").exists():
        tests = ["cargo", "test", "--all-features", "--no-fail-fast", "--tests"]
    shell([*tests, "--no-run"], folder, environment)
    output = shell([*tests, "--", "--test-threads=4", "--skip", "unit_", "--skip", "tls"], folder, environment, 1500, check=False)
    return report.cargo(keep(suite.name, output))


def put(broker: Broker, path: str, body: object) -> None:
    request = urllib.request.Request(broker.api + path, json.dumps(body).encode(), {"content-type": "application/json"}, method="PUT")
    request.add_header("authorization", "Basic " + base64.b64encode(b"guest:guest").decode())
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=10):
        pass


SUITES = {
    suite.name: suite
    for suite in (
        Suite("rabbitmqadmin", "68 · 0 · 0", rabbitmqadmin, needs=("amqp", "management")),
        Suite(
            "rabbitmq-http-api-rs",
            "247 · 34 · 0",
            http_api_rs,
            "michaelklishin/rabbitmq-http-api-rs",
            "55ebcc04c54189e99533964801be414baada016d",
            needs=("amqp", "management"),
        ),
    )
}
