"""The brokers a suite can run against: reactor, or Debian's RabbitMQ to see what the real one does. Free ports, nothing kept."""

import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60
# Doors that take part; the others are off.
DOORS = {"amqp": "AMQP 0-9-1", "amqps": "AMQP over TLS", "management": "management HTTP API"}
RABBITMQ_SCRIPT = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


@dataclass
class Broker:
    """A running broker. A port it does not serve is a free one on which nothing listens."""

    name: str
    process: subprocess.Popen
    folder: Path
    ports: dict[str, int] = field(default_factory=dict)
    # Runs rabbitmqctl for it, in a shell; empty where there is none.
    control: str = ""

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.ports['amqp']}"

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.ports['management']}/api"

    def serves(self, door: str) -> bool:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.ports[door]), timeout=1).close()
            return True
        return False

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-4000:]


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextlib.contextmanager
def running(name: str, settings: dict[str, str] | None = None):
    """Starts `reactor` (its `REACTOR_…` may be set) or `rabbitmq`, yields it, ends its whole process group."""
    folder = Path(tempfile.mkdtemp(prefix=f"conformance-{name}-"))
    broker = None
    try:
        broker = start_rabbitmq(folder) if name == "rabbitmq" else start_reactor(folder, settings or {})
        wait_for(broker)
        yield broker
    finally:
        if broker is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(broker.process.pid, signal.SIGKILL)
            broker.process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def start_reactor(folder: Path, settings: dict[str, str]) -> Broker:
    binary = Path(os.environ.get("REACTOR_BIN", ROOT / "target/release/reactor"))
    ports = dict(zip(DOORS, free_ports(len(DOORS))))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("REACTOR_")} | settings
    for door in ("HTTP", "HTTPS", "INGRESS", "CONTROL", "BUS", "OTLP_GRPC", "OTLP_HTTP", "PROMETHEUS"):
        environment[f"REACTOR_PORTS_{door}"] = "0"
    for door, port in ports.items():
        environment[f"REACTOR_PORTS_{door.upper()}"] = str(port)
    return Broker("reactor", spawn([binary, "up", "--ephemeral"], folder, environment), folder, ports)


def start_rabbitmq(folder: Path) -> Broker:
    ports = dict(zip(DOORS, free_ports(len(DOORS))))
    dist, epmd = free_ports(2)
    settings = [
        f"listeners.tcp.1 = 127.0.0.1:{ports['amqp']}",
        f"listeners.tcp.2 = ::1:{ports['amqp']}",
        f"management.tcp.port = {ports['management']}",
        "loopback_users = none",
        "collect_statistics_interval = 1000",
        "log.console = true",
        "log.file = false",
    ]
    if certificates := certificate(folder):
        settings += [f"listeners.ssl.1 = {ports['amqps']}"]
        settings += [f"ssl_options.{option} = {file}" for option, file in certificates.items()]
    (folder / "rabbitmq.conf").write_text("\n".join(settings) + "\n")
    (folder / "plugins").write_text("[rabbitmq_management].\n")
    own = {
        "HOME": str(folder),
        "RABBITMQ_NODENAME": "rabbit@localhost",
        "RABBITMQ_DIST_PORT": str(dist),
        "ERL_EPMD_PORT": str(epmd),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "logs"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
    }
    control = shlex.join(["env", *(f"{name}={value}" for name, value in own.items()), str(RABBITMQ_SCRIPT.with_name("rabbitmqctl"))])
    return Broker("rabbitmq", spawn([RABBITMQ_SCRIPT], folder, os.environ | own), folder, ports, control)


def certificate(folder: Path) -> dict[str, Path]:
    """A self-signed certificate, when openssl is there to make one."""
    if not shutil.which("openssl"):
        return {}
    key, file = folder / "key.pem", folder / "certificate.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", file]
    subprocess.run(command + subject, check=True, capture_output=True)
    return {"cacertfile": file, "certfile": file, "keyfile": key}


def spawn(command, folder: Path, environment) -> subprocess.Popen:
    with open(folder / "log", "wb") as log:
        return subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )


def wait_for(broker: Broker) -> None:
    until = time.monotonic() + START_SECONDS
    while "tartup complete" not in broker.log():
        if broker.process.poll() is not None or time.monotonic() > until:
            raise SystemExit(f"{broker.name} did not start:\n{broker.log()}")
        time.sleep(0.05)
