"""Monitoring that people run against RabbitMQ's management API: Nagios' checks, and netdata as the exporter of Prometheus metrics."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import urllib.request
from pathlib import Path

import report
from broker import Broker, free_ports
from management import put
from suites import HERE, Suite, debian, keep, python, shell

LAG_SECONDS = 30
TRAFFIC = HERE / "apps/monitors/traffic.py"
NETDATA_PLUGIN = "/usr/lib/netdata/python.d/rabbitmq.chart.py"
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@contextlib.contextmanager
def traffic(broker: Broker):
    """The program of `apps/monitors` at work."""
    command = [python("monitors", "pika>=1.3,<2"), TRAFFIC]
    environment = os.environ | {"AMQP_URL": broker.url}
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "running\n", "the traffic did not start"
        yield
    finally:
        process.stdin.close()
        process.wait(30)


# What each check says when all is well. `{node}` is what follows `rabbit@`.
NAGIOS = {
    "check_rabbitmq_aliveness": ("RABBITMQ_ALIVENESS OK - vhost: /",),
    "check_rabbitmq_connections -w -1,-1,-1,-1 -c -1,-1,-1,-1": ("RABBITMQ_CONNECTIONS OK", "connections=1;", "connections_notrunning=0;", "receive_rate=", "send_rate="),
    "check_rabbitmq_connections --clientuser nobody": ("RABBITMQ_CONNECTIONS OK", "connections=0;"),
    "check_rabbitmq_connections -w 100,100,100000,100000 -c 0,100,100000,100000": ("RABBITMQ_CONNECTIONS CRITICAL", "connections CRITICAL (1)"),
    # It counts one less than there are.
    "check_rabbitmq_objects": ("RABBITMQ_OBJECTS OK", "vhost=0;", "exchange=", "binding=", "queue=", "channel=1;"),
    "check_rabbitmq_overview": ("RABBITMQ_OVERVIEW OK", "messages_ready OK (3)", "messages_unacknowledged OK (2)"),
    "check_rabbitmq_overview -w 4,4,1 -c 100,100,100": ("RABBITMQ_OVERVIEW WARNING", "messages_unacknowledged WARNING (2)"),
    "check_rabbitmq_partition --node {node}": ("RABBITMQ_PARTITION OK",),
    "check_rabbitmq_queue --queue orders": ("RABBITMQ_QUEUE OK", "messages OK (5)", "messages_ready OK (3)", "consumers OK (1)"),
    "check_rabbitmq_queue --queue orders -w 1,1,1,1 -c 4,4,4,4": ("RABBITMQ_QUEUE CRITICAL", "messages CRITICAL (5)"),
    "check_rabbitmq_queue --queue nowhere": ("RABBITMQ_QUEUE CRITICAL",),
    "check_rabbitmq_server --node {node} -w 101,101,101,101 -c 102,102,102,102": ("RABBITMQ_SERVER OK", "Memory=", "Process=", "FD=", "Sockets="),
    "check_rabbitmq_watermark --node {node}": ("RABBITMQ_WATERMARK OK", "mem_alarm", "disk_free_alarm"),
    "check_rabbitmq_overview --password wrong": ("RABBITMQ_OVERVIEW CRITICAL", "Access Refused"),
}


def nagios(broker: Broker) -> report.Report:
    debian("check_rabbitmq_overview:nagios-plugins-rabbitmq")
    result, log = report.Report(), []
    with traffic(broker):
        node = get(broker, "/overview")["node"].removeprefix("rabbit@")
        for check, holds in NAGIOS.items():
            program, *words = check.format(node=node).split()
            command = [program, "-H", "127.0.0.1", "--port", broker.ports["management"], *words]
            judge(result, log, check, holds, lambda: shell(command, HERE, {"LC_ALL": "C.UTF-8"}, 30, check=False))
    keep("nagios", "\n".join(log))
    return result


def judge(result: report.Report, log: list[str], name: str, holds, ask) -> None:
    """A check passes when its output holds everything within the time that statistics may lag."""
    output = report.settled(ask, lambda output: all(text in output for text in holds), LAG_SECONDS)
    missing = [text for text in holds if text not in output]
    log.append(f"$ {name}\n{output}")
    result.add(name, "failed" if missing else "passed", f"lacks {missing}: {' '.join(output.split())[:250]}" if missing else "")


NETDATA_SETTINGS = """
[global]
    run as user = root
    hostname = monitored
[db]
    mode = ram
[directories]
    config = {folder}
    stock config = /usr/lib/netdata/conf.d
    log = {folder}
    cache = {folder}
    lib = {folder}
[web]
    bind to = 127.0.0.1:{port}
[ml]
    enabled = no
[health]
    enabled = no
[plugins]
    enable running new plugins = no
    python.d = yes
"""

NETDATA_JOB = """
broker:
  host: 127.0.0.1
  port: {port}
  user: {user}
  pass: {password}
  update_every: 1
  autodetection_retry: 1
  collect_queues_metrics: yes
"""

# Chart and dimension, and what the value must be once the statistics are there.
NETDATA = {
    ("queued_messages", "ready"): lambda value: value >= 3,
    ("queued_messages", "unacknowledged"): lambda value: value >= 2,
    ("global_counts", "connections"): lambda value: value == 1,
    ("global_counts", "channels"): lambda value: value == 2,
    ("global_counts", "consumers"): lambda value: value == 2,
    ("global_counts", "queues"): lambda value: value == 2,
    ("global_counts", "exchanges"): lambda value: value >= 7,
    ("message_rates", "publish"): lambda value: 1 < value < 20,
    ("message_rates", "ack"): lambda value: 1 < value < 20,
    ("message_rates", "deliver"): lambda value: 1 < value < 20,
    ("message_rates", "redeliver"): lambda value: value == 0,
    ("connection_churn_rates", "created"): lambda value: value >= 0,
    ("connection_churn_rates", "closed"): lambda value: value >= 0,
    ("channel_churn_rates", "created"): lambda value: value >= 0,
    ("channel_churn_rates", "closed"): lambda value: value >= 0,
    ("queue_churn_rates", "created"): lambda value: value >= 0,
    ("queue_churn_rates", "declared"): lambda value: value >= 0,
    ("queue_churn_rates", "deleted"): lambda value: value >= 0,
    ("file_descriptors", "used"): lambda value: value > 0,
    ("socket_descriptors", "used"): lambda value: value > 0,
    ("erlang_processes", "used"): lambda value: value > 0,
    ("erlang_run_queue", "length"): lambda value: value >= 0,
    ("memory", "used"): lambda value: value > 0,
    ("disk_space", "free"): lambda value: value > 0,
    ("vhost___message_stats", "publish"): lambda value: 1 < value < 20,
    ("vhost___message_stats", "confirm"): lambda value: 1 < value < 20,
    ("vhost___message_stats", "ack"): lambda value: 1 < value < 20,
    ("vhost___queue_orders_queued_message", "messages"): lambda value: value == 5,
    ("vhost___queue_orders_queued_message", "ready"): lambda value: value == 3,
    ("vhost___queue_orders_queued_message", "unack"): lambda value: value == 2,
    ("vhost___queue_work_messages_stats", "publish"): lambda value: 1 < value < 20,
    ("vhost___queue_work_messages_stats", "ack"): lambda value: 1 < value < 20,
}
SAMPLE = re.compile(r'^netdata_rabbitmq_\w+\{chart="rabbitmq_broker\.([^"]+)",.*dimension="([^"]+)".*\} (\S+)', re.MULTILINE)


def netdata(broker: Broker) -> report.Report:
    debian("/usr/sbin/netdata:netdata-core", f"{NETDATA_PLUGIN}:netdata-plugins-python")
    result = report.Report()
    with traffic(broker), exporter(broker) as (metrics, folder):

        def collected() -> dict[tuple[str, str], float]:
            with contextlib.suppress(OSError):
                return {(chart, dimension): float(value) for chart, dimension, value in SAMPLE.findall(metrics())}
            return {}

        are_right = lambda values: all(key in values and holds(values[key]) for key, holds in NETDATA.items())
        values = report.settled(collected, are_right, LAG_SECONDS)
        for key, holds in NETDATA.items():
            passed = key in values and holds(values[key])
            result.add(" ".join(key), "passed" if passed else "failed", "" if passed else f"is {values.get(key, 'not there')}")
        with contextlib.suppress(OSError):
            keep("netdata", metrics() + (folder / "error.log").read_text(errors="replace"))
    return result


@contextlib.contextmanager
def exporter(broker: Broker):
    """netdata with nothing but its collector for RabbitMQ, as a user who may only monitor; yields what Prometheus would scrape."""
    folder = Path(tempfile.mkdtemp(prefix="netdata-"))
    (port,) = free_ports(1)
    put(broker, "/users/watch", {"password": "secret", "tags": "monitoring"})
    put(broker, "/permissions/%2F/watch", {"configure": "", "write": "", "read": ".*"})
    (folder / "netdata.conf").write_text(NETDATA_SETTINGS.format(folder=folder, port=port))
    (folder / ".opt-out-from-anonymous-statistics").touch()
    (folder / "python.d").mkdir()
    (folder / "python.d.conf").write_text("enabled: yes\ndefault_run: no\nrabbitmq: yes\n")
    job = NETDATA_JOB.format(port=broker.ports["management"], user="watch", password="secret")
    (folder / "python.d/rabbitmq.conf").write_text(job)
    command = ["/usr/sbin/netdata", "-D", "-c", folder / "netdata.conf", "-P", folder / "pid"]
    with open(folder / "out.log", "wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def metrics() -> str:
        with OPENER.open(f"http://127.0.0.1:{port}/api/v1/allmetrics?format=prometheus&source=average", timeout=10) as response:
            return response.read().decode()

    try:
        yield metrics, folder
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def get(broker: Broker, path: str):
    login = urllib.request.HTTPPasswordMgrWithPriorAuth()
    login.add_password(None, broker.api, "guest", "guest", is_authenticated=True)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPBasicAuthHandler(login))
    with opener.open(broker.api + path, timeout=10) as response:
        return json.load(response)


SUITES = {
    suite.name: suite
    for suite in (
        Suite("nagios", "14 · 0 · 0", nagios, needs=("amqp", "management")),
        Suite("netdata", "32 · 0 · 0", netdata, needs=("amqp", "management")),
    )
}
