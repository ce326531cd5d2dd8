"""rabbitmqadmin 2, the one written in Rust: its own integration tests, and every command of it that needs no plugin.

Left out is `import definitions`, which ends in a panic of its own before it asks anything; `definitions import` is the same."""

import json
import subprocess
import tempfile
from pathlib import Path

import report
from broker import Broker
from management import put
from monitors import get, traffic
from suites import CACHE, Suite, crate, keep, patch, shell

VERSION = "2.35.0"
LAG_SECONDS = 10
# Its tests of TLS want certificates of their own.
OWN_TESTS = ["cargo", "test", "--locked", "--no-fail-fast", "--test", "integration"]


def source() -> tuple[Path, dict[str, str]]:
    """Where its source is, and the environment to build and run it in."""
    folder = crate("rabbitmqadmin", VERSION)
    # It would be optimized, for minutes.
    patch([folder / "Cargo.toml"], (r"opt-level = 3", "opt-level = 0"))
    return folder, {"CARGO_TARGET_DIR": str(CACHE / "cargo"), "CARGO_TERM_COLOR": "never", "TEST_STATS_DELAY": "1500"}


def own_tests(broker: Broker) -> report.Report:
    folder, environment = source()
    files = [folder / "src/constants.rs", *folder.glob("tests/integration/*.rs"), *folder.glob("tests/fixtures/config_files/*")]
    patch(files, (r"\b15672\b", str(broker.ports["management"])), (r"\blocalhost:5672\b", f"localhost:{broker.ports['amqp']}"))
    # What its own set-up script does with rabbitmqctl.
    put(broker, "/vhosts/rust%2Frabbitmqadmin", {})
    put(broker, "/permissions/rust%2Frabbitmqadmin/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    put(broker, "/cluster-name", {"name": "rabbitmq@localhost"})
    shell([*OWN_TESTS, "--no-run"], folder, environment)
    output = shell([*OWN_TESTS, "--", "--test-threads=1", "--skip", "tls_tests"], folder, environment, 1500, check=False)
    return report.cargo(keep("rabbitmqadmin-2-own", output))


class Admin:
    """The program against one broker. Each call is a check: it succeeds or is refused as it must, and its output holds what it must."""

    def __init__(self, program: Path, broker: Broker, folder: Path) -> None:
        self.base = [program, f"--port={broker.ports['management']}"]
        self.folder, self.report, self.log = folder, report.Report(), []

    def check(self, command: str, *holds: str, lacks: str = "", name: str = "", fails: bool = False) -> str:
        words = [*self.base, *command.split(" ")]
        how = {"cwd": self.folder, "stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": 60}
        missing = lambda done: [text for text in holds if text not in done.stdout + done.stderr]
        # RabbitMQ's counters lag by some seconds.
        done = report.settled(lambda: subprocess.run(words, **how), lambda done: not missing(done), LAG_SECONDS)
        output, missing = done.stdout + done.stderr, missing(done)
        self.log.append(f"$ rabbitmqadmin {command}\n{output}")
        why = ""
        if (done.returncode != 0) != fails:
            why = "was not refused" if fails else f"ended with {done.returncode}"
        elif missing or (lacks and lacks in output):
            why = f"lacks {missing}" if missing else f"holds {lacks}"
        self.report.add(name or command, "failed" if why else "passed", f"{why}: {' '.join(output.split())[:250]}")
        return done.stdout


EVERYTHING = "--configure .* --read .* --write .*"


def objects(admin: Admin) -> None:
    check = admin.check
    check("vhosts declare --name shop --description orders --default-queue-type classic")
    check("declare vhost --name attic --tracing")
    check("vhosts list", "shop", "orders", "attic")
    check("list vhosts", "shop")
    check("users declare --name ann --password secret --tags administrator")
    check("passwords salt_and_hash secret")
    check("declare user --name bob --password secret --tags monitoring")
    check("users list", "ann", "administrator")
    check("list users", "bob", "monitoring")
    check(f"--vhost shop permissions declare --username guest {EVERYTHING}")
    check(f"--vhost / declare permissions --username ann {EVERYTHING}")
    check("permissions list", "ann")
    check("list permissions", "shop", "guest")
    check("users permissions", "ann")
    check("--username ann --password secret queues list", name="queues list as another user")
    check("--username ann --password wrong queues list", "Login failed", name="queues list with a wrong password", fails=True)
    check("exchanges declare --name orders --type topic --durable true")
    check("declare exchange --name inner --type fanout --durable false --auto-delete true")
    check("exchanges list", "orders", "topic")
    check("list exchanges", "inner", "fanout")
    check('queues declare --name new --type classic --durable true --arguments {"x-max-length":10}')
    check("declare queue --name replicated --type quorum --durable true")
    check("queues declare --name new --type classic --durable false", "inequivalent arg", fails=True)
    check("--vhost shop queues declare --name away --type classic --durable true")
    check("streams declare --name history --expiration 1D --max-length-bytes 1000000")
    check("declare stream --name more --expiration 1h")
    check("streams list", "history")
    check("streams show --name history", "history")
    check("queues show --name new", "new", "classic")
    check("list queues", "replicated")
    check("bindings declare --source orders --destination-type queue --destination new --routing-key order.#")
    check('declare binding --source amq.headers --destination-type queue --destination new --routing-key _ --arguments {"x-match":"any","kind":"a"}')
    check("exchanges bind --source orders --destination-type exchange --destination inner --routing-key in.#")
    check("bindings list", "order.#", "in.#")
    check("list bindings", "amq.headers")


def messages(admin: Admin) -> None:
    check = admin.check
    check("publish message --exchange orders --routing-key order.created --payload one", "published")
    check('publish message --routing-key new --payload two --properties {"delivery_mode":2,"headers":{"n":1}}', "published")
    check("publish message --routing-key nowhere --payload lost")
    check("queues list", "new", name="queues list with messages")
    check("get messages --queue new --count 2 --ack-mode ack_requeue_true", "one", "two")
    check("get messages --queue new --ack-mode ack_requeue_false", "one", "order.created")
    check("queues purge --name new")
    check("purge queue --name new")
    check("get messages --queue new", name="get messages of an empty queue", lacks="two")
    check("queues rebalance")
    check("rebalance queues")


def rules(admin: Admin) -> None:
    check = admin.check
    for kind in ("policies", "operator_policies"):
        name = kind[:3]
        check(f'{kind} declare --name {name} --pattern ^short --apply-to queues --priority 3 --definition {{"max-length":5,"expires":60000}}')
        check(f"{kind} list", name, "max-length")
        check(f"{kind} list_in --apply-to queues", name)
        check(f"{kind} list_matching_object --name shorter --type queues", name)
        check(f'{kind} patch --name {name} --definition {{"message-ttl":100}}')
        check(f"{kind} list", "message-ttl", name=f"{kind} list after the patch")
        check(f"{kind} update_definition --name {name} --definition-key max-length --new-value 77")
        check(f"{kind} update_definitions_of_all_in --definition-key max-length --new-value 78")
        check(f"{kind} list_in", "78", name=f"{kind} list_in after the update")
        check(f"{kind} delete_definition_keys --name {name} --definition-keys message-ttl")
        check(f"{kind} delete_definition_keys_from_all_in --definition-keys expires")
        check(f"{kind} list", "78", lacks="expires", name=f"{kind} list after the keys are gone")
    check("policies declare_override --name pol --override-name over --definition {\"max-length\":9}")
    check('policies declare_blanket --name blanket --apply-to queues --definition {"max-length-bytes":1000}')
    check("policies update_definitions_of_all --definition-key max-length --new-value 79")
    check("policies delete_definition_keys_from_all --definition-keys max-length-bytes")
    check("policies list_conflicting")
    check("policies list_conflicting_in")
    check('declare policy --name second --pattern ^s --apply-to all --priority 1 --definition {"max-length":6}')
    check('declare operator_policy --name second --pattern ^s --apply-to queues --priority 1 --definition {"max-length":6}')
    check("list policies", "second")
    check("list operator_policies", "second")
    check('declare policy --name wrong --pattern ^s --apply-to queues --definition {"no-such-key":6}', "no-such-key", fails=True)
    check("--vhost shop vhost_limits declare --name max-queues --value 7")
    check("--vhost shop declare vhost_limit --name max-connections --value 70")
    check("--vhost shop vhost_limits list", "max-queues", "70")
    check("--vhost shop list vhost_limits", "max-connections")
    check("user_limits declare --username ann --name max-connections --value 8")
    check("declare user_limit --username ann --name max-channels --value 80")
    check("user_limits list --username ann", "max-connections", "80")
    check("list user_limits", "ann", "max-channels")
    check("users limits", "ann")
    check('global_parameters set --name motd --value {"text":"hello"}')
    check("global_parameters list", "motd", "hello")
    check("global_parameters clear --name motd")
    check("parameters list_all")
    check("parameters list --component vhost-limits")
    check("parameters list_in --component operator_policy")
    check("list parameters")
    check("vhosts enable_deletion_protection --name attic")
    check("vhosts delete --name attic", fails=True, name="vhosts delete of a protected one")
    check("vhosts disable_deletion_protection --name attic")


def looks(admin: Admin, broker: Broker) -> None:
    check = admin.check
    node = get(broker, "/overview")["node"]
    check("show overview", "RabbitMQ")
    check("show churn", "Queues")
    check("show endpoint", str(broker.ports["management"]))
    check("nodes list", node)
    check("list nodes", node)
    for group in ("nodes", "show"):
        check(f"{group} memory_breakdown_in_bytes --node {node}", "Total", name=f"{group} memory_breakdown_in_bytes")
        check(f"{group} memory_breakdown_in_percent --node {node}", "%", name=f"{group} memory_breakdown_in_percent")
    check("auth_attempts stats --node " + node, "http", name="auth_attempts stats")
    check("plugins list_all")
    check(f"plugins list_on_node --node {node}", name="plugins list_on_node")
    check("health_check local_alarms", "passed")
    check("health_check cluster_wide_alarms", "passed")
    check("health_check node_is_quorum_critical", "passed")
    check(f"health_check port_listener --port {broker.ports['amqp']}", "passed", name="health_check port_listener")
    check("health_check port_listener --port 1", fails=True)
    check("health_check protocol_listener --protocol amqp", "passed")
    check("health_check protocol_listener --protocol mqtt", fails=True)
    check("feature_flags list", "quorum_queue")
    check("list feature_flags", "virtual_host_metadata")
    check("feature_flags enable --name quorum_queue")
    check("feature_flags enable_all")
    check("deprecated_features list", "transient_nonexcl_queues")
    check("list deprecated_features", "ram_node_type")
    check("deprecated_features list_used")
    check("list deprecated_features_in_use")
    with traffic(broker):
        for group in ("list connections", "connections list"):
            check(group, "guest")
        check("list user_connections --username guest", "guest", "127.0.0.1")
        check("connections list_of_user --username guest", "127.0.0.1")
        check("users connections --username guest", "127.0.0.1")
        check("list channels", "127.0.0.1")
        check("channels list", "127.0.0.1")
        check("list consumers", "work")
        check("close user_connections --username nobody")
        check("connections close --name nobody", "404", fails=True)
        check("close connection --name nobody", "404", fails=True)
    for style in ("modern", "borderless", "markdown", "dots", "ascii", "psql"):
        check(f"--table-style {style} queues list --page 1 --page-size 10", "new", name=f"queues list as {style}")
    check("queues list --columns name,messages", "new", lacks="classic")
    check("--non-interactive --quiet queues list", "new")
    check("shell completions --shell bash", "rabbitmqadmin")


def definitions(admin: Admin) -> None:
    check = admin.check
    check("definitions export --file all.json")
    check("export definitions --stdout", "replicated")
    check("--vhost shop definitions export_from_vhost --file shop.json")
    check("definitions export --stdout --transformations exclude_users,exclude_permissions", "replicated", lacks="password_hash")
    exported = json.loads((admin.folder / "all.json").read_text())
    names = {queue["name"] for queue in exported["queues"]}
    admin.report.add("the export names what exists", "passed" if {"new", "replicated", "away"} <= names else "failed", str(sorted(names)))
    check("bindings delete --source orders --destination-type queue --destination new --routing-key order.#")
    check("delete queue --name replicated")
    check("definitions import --file all.json")
    check("bindings list", "order.#", name="bindings list after the import")
    check("--vhost attic definitions import_into_vhost --file shop.json")
    check("--vhost attic queues list", "away", name="queues list after the import into another vhost")


def ends(admin: Admin) -> None:
    check = admin.check
    check("exchanges unbind --source orders --destination-type exchange --destination inner --routing-key in.#")
    check("delete binding --source orders --destination-type queue --destination new --routing-key order.#")
    check("queues delete --name new")
    check("queues delete --name new", "404", fails=True, name="queues delete of what is gone")
    check("queues delete --name new --idempotently")
    check("delete stream --name more")
    check("streams delete --name history")
    for number in range(3):
        check(f"queues declare --name many.{number} --type classic")
    check("queues delete_multiple --name-pattern ^many --dry-run", "many.2")
    check("queues delete_multiple --name-pattern ^many --approve")
    check("queues list", "replicated", lacks="many", name="queues list after many are deleted")
    check("exchanges delete --name orders")
    check("delete exchange --name inner --idempotently")
    check("policies delete --name pol")
    check("delete policy --name second")
    check("operator_policies delete --name ope")
    check("delete operator_policy --name second")
    check("--vhost shop vhost_limits delete --name max-queues")
    check("--vhost shop delete vhost_limit --name max-connections")
    check("user_limits delete --username ann --name max-connections")
    check("delete user_limit --username ann --name max-channels")
    check("permissions delete --username ann")
    check("--vhost shop delete permissions --username guest")
    check("users delete --name bob")
    check("delete user --name ann")
    check("vhosts delete --name attic")
    check("vhosts delete_multiple --name-pattern ^shop --approve")
    check("vhosts list", lacks="shop", name="vhosts list after all are deleted")


def every_command(broker: Broker) -> report.Report:
    folder, environment = source()
    shell(["cargo", "build", "--locked"], folder, environment)
    with tempfile.TemporaryDirectory(prefix="rabbitmqadmin-2-") as place:
        admin = Admin(CACHE / "cargo/debug/rabbitmqadmin", broker, Path(place))
        try:
            for part in (objects, messages, rules):
                part(admin)
            looks(admin, broker)
            definitions(admin)
            ends(admin)
        finally:
            keep("rabbitmqadmin-2", "\n".join(admin.log))
        return admin.report


SUITES = {
    suite.name: suite
    for suite in (
        Suite("rabbitmqadmin-2", "169 · 19 · 0", every_command, needs=("amqp", "management")),
        Suite("rabbitmqadmin-2-own", "234 · 53 · 0", own_tests, needs=("amqp", "management")),
    )
}
