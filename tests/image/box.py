"""An image run as a container engine would run it, without one: its file tree as root, its user, its environment, its entry point,
in namespaces of its own (network, mounts, processes: the program is process 1), in a network like docker's default bridge.

    host    172.17.0.1, the default gateway of every box; published ports are relayed from its 127.0.0.1
    box     172.17.0.2, another box 172.17.0.3
    lan     192.168.77.2, a machine that reaches the host, and through it the ports published to everybody
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
DEADLINE = 30
GATEWAY, LAN = "172.17.0.1", "192.168.77.2"
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
# What an engine adds where an image says nothing.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def output(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(
            f"{' '.join(map(str, command))} ended with {done.returncode}: {done.stderr.strip() or done.stdout.strip()}"
        )
    return done.stdout


def wait_until(what, condition, seconds=DEADLINE):
    """The first true value of `condition`; an exception in it counts as not yet."""
    deadline, why = time.monotonic() + seconds, ""
    while time.monotonic() < deadline:
        try:
            value = condition()
            if value:
                return value
        except Exception as error:  # noqa: BLE001
            why = f" ({error})"
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what}{why}")


class Checks:
    """Runs checks by name and counts them; one that fails does not stop the others."""

    def __init__(self):
        self.passed = self.failed = 0

    def __call__(self, name, check):
        try:
            told = check()
            self.passed += 1
            print(f"  ok      {name}{f': {told}' if isinstance(told, str) and told else ''}", flush=True)
            return True
        except Exception as error:  # noqa: BLE001
            self.failed += 1
            print(f"  FAILED  {name}: {error}", flush=True)
            return False

    def finish(self):
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 1 if self.failed or not self.passed else 0


class Image:
    """A built image: its configuration, and its file tree mounted for as long as this is open."""

    def __init__(self, target):
        self.name = f"reactor:{target}"
        inspected = json.loads(output("buildah", "inspect", "--type", "image", self.name))
        self.config = inspected["Docker"]["config"]
        self.bytes = sum(layer["size"] for layer in json.loads(inspected["Manifest"])["layers"])
        self.container = output("buildah", "from", "--pull-never", self.name).strip()
        self.tree = output("buildah", "mount", self.container).strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        output("buildah", "rm", self.container)

    def environment(self):
        return {"PATH": PATH, "HOME": self.config["WorkingDir"], **dict(pair.split("=", 1) for pair in self.config["Env"] or [])}

    def health_check(self):
        kind, *command = self.config["Healthcheck"]["Test"]
        assert kind == "CMD", f"a health check through a shell: {command}"
        return command


class Network:
    """Host, boxes and a machine elsewhere, each in a network namespace. `published` ports of the first box are relayed from the
    host's 127.0.0.1, and with `to_everybody` from its address in the local network too."""

    def __init__(self, published=(), to_everybody=(), boxes=1):
        self.stack = ExitStack()
        self.prefix = f"rx{os.getpid()}"
        try:
            self.build(published, to_everybody, boxes)
        except BaseException:
            self.stack.close()
            raise

    def build(self, published, to_everybody, boxes):
        self.host, self.lan = self.namespace("host"), self.namespace("lan")
        self.ip(self.host, "link add docker0 type bridge")
        self.ip(self.host, f"addr add {GATEWAY}/16 dev docker0")
        self.ip(self.host, "link set docker0 up")
        self.boxes = [self.box(number) for number in range(boxes)]
        self.ip(self.host, f"link add lan0 type veth peer name eth0 netns {self.lan}")
        self.ip(self.host, "addr add 192.168.77.1/24 dev lan0")
        self.ip(self.host, "link set lan0 up")
        self.ip(self.lan, f"addr add {LAN}/24 dev eth0")
        self.ip(self.lan, "link set eth0 up")
        self.run(self.host, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        if to_everybody:
            ports = ", ".join(map(str, to_everybody))
            rule = f"iifname lan0 tcp dport {{ {ports} }} dnat to 172.17.0.2"
            rules = f"table ip published {{\nchain in {{\ntype nat hook prerouting priority dstnat\n{rule}\n}}\n}}\n"
            self.run(self.host, "nft", "-f", "-", input=rules)
        if published:
            relays = [sys.executable, os.path.join(HERE, "relay.py"), "172.17.0.2", *map(str, published)]
            relay = self.start(self.host, *relays, stdout=subprocess.PIPE, text=True)
            assert relay.stdout.readline() == "relaying\n", "the relay of published ports did not start"

    def namespace(self, name):
        full = f"{self.prefix}-{name}"
        output("ip", "netns", "add", full)
        self.stack.callback(output, "ip", "netns", "del", full)
        self.ip(full, "link set lo up")
        return full

    def box(self, number):
        name = self.namespace(f"box{number}")
        self.ip(self.host, f"link add box{number} type veth peer name eth0 netns {name}")
        self.ip(self.host, f"link set box{number} master docker0 up")
        self.ip(name, f"addr add 172.17.0.{number + 2}/16 dev eth0")
        self.ip(name, "link set eth0 up")
        self.ip(name, f"route add default via {GATEWAY}")
        # As docker starts every container; other engines do not.
        self.run(name, "sysctl", "-qw", "net.ipv4.ip_unprivileged_port_start=0")
        return name

    def ip(self, namespace, arguments):
        output("ip", "-n", namespace, *arguments.split())

    def run(self, namespace, *command, **options):
        return output("ip", "netns", "exec", namespace, *command, **options)

    def start(self, namespace, *command, **options):
        process = subprocess.Popen(["ip", "netns", "exec", namespace, *command], **options)
        self.stack.callback(end, process)
        return process

    def get(self, namespace, url, *options):
        """Status and body of a request from there."""
        text = self.run(namespace, "curl", "-sS", "-m", "10", "-w", "\n%{http_code}", *options, url)
        body, _, status = text.rpartition("\n")
        return int(status), body

    def client(self, namespace, *arguments):
        """Runs a verb of client.py there."""
        return self.run(namespace, sys.executable, os.path.join(HERE, "client.py"), *arguments, timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()


def end(process):
    if process.poll() is None:
        process.kill()
    process.wait()
    if process.stdout:
        process.stdout.close()


class Box:
    """A running image. Volumes are `(folder outside, path inside)`; `command` and `user` replace the image's."""

    def __init__(self, image, namespace, arguments=(), env=(), volumes=(), read_only=False, cwd=None, command=None, user=None):
        self.image, self.user = image, user or image.config["User"]
        self.env = {**image.environment(), **dict(env)}
        self.cwd = cwd or image.config["WorkingDir"]
        self.log = tempfile.NamedTemporaryFile("r", prefix="reactor-box-", suffix=".log")
        self.files = tempfile.mkdtemp(prefix="reactor-box-")
        command = command or [*image.config["Entrypoint"], *arguments]
        enter = ["ip", "netns", "exec", namespace] if namespace else []
        words = [
            *enter,
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "sh",
            "-euc",
            self.set_up(volumes, read_only),
            "box",
        ]
        with open(self.log.name, "w") as log:
            # A session of its own: a Ctrl-C is for the tests, which then take everything down.
            everything = [*words, *self.inside(command)]
            self.process = subprocess.Popen(everything, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        self.pid = None

    def inside(self, command):
        """Words that run `command` within the tree as the image's user, with its environment and nothing else."""
        user, group = self.user.split(":")
        env = [f"{name}={value}" for name, value in self.env.items()]
        unshare = shutil.which("unshare")
        return [
            shutil.which("env"),
            "-i",
            *env,
            unshare,
            "--root",
            self.image.tree,
            "--wd",
            self.cwd,
            "--setgid",
            group,
            "--setuid",
            user,
            "--",
            *command,
        ]

    def set_up(self, volumes, read_only):
        """What an engine mounts before it starts the program: proc, a small dev, hosts and resolv.conf, the volumes."""
        tree = self.image.tree
        hosts = "127.0.0.1 localhost\n::1 localhost ip6-localhost\n172.17.0.2 box\n172.17.0.1 host.docker.internal\n"
        for name, text in (("hosts", hosts), ("resolv.conf", open("/etc/resolv.conf").read())):
            with open(os.path.join(self.files, name), "w") as file:
                file.write(text)
        os.chmod(self.files, 0o755)
        lines = ["mount --make-rprivate /", f"mount --bind {tree} {tree}"]
        for inside in ("/proc", "/dev", *(path for _, path in volumes)):
            os.makedirs(tree + inside, exist_ok=True)
        lines += [f"mount -t proc proc {tree}/proc", f"mount -t tmpfs -o mode=755,nosuid tmpfs {tree}/dev"]
        for device in DEVICES:
            lines.append(f"touch {tree}/dev/{device}; mount --bind /dev/{device} {tree}/dev/{device}")
        for name in ("hosts", "resolv.conf"):
            os.makedirs(f"{tree}/etc", exist_ok=True)
            open(f"{tree}/etc/{name}", "a").close()
            lines.append(f"mount --bind {self.files}/{name} {tree}/etc/{name}")
        lines += [f"mount --bind {outside} {tree}{path}" for outside, path in volumes]
        if read_only:
            lines.append(f"mount -o remount,bind,ro {tree}")
        return "\n".join([*lines, 'exec "$@"'])

    def text(self):
        with open(self.log.name) as log:
            return log.read()

    def started(self):
        """Waits for the start block and finds the program's process as the host sees it."""

        def ready():
            assert self.process.poll() is None, f"it ended with {self.process.returncode}:\n{self.text()}"
            return "Server startup complete" in self.text()

        wait_until("the start block", lambda: self.process.poll() is not None or ready())
        ready()
        (self.pid,) = map(int, open(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read().split())
        assert self.row(f"/proc/{self.pid}/status")["NSpid"].split()[-1] == "1", "reactor is not process 1"
        return self

    @staticmethod
    def row(path):
        return dict(line.split(":\t", 1) for line in open(path).read().splitlines() if ":\t" in line)

    def token(self):
        return self.text().split("?token=")[1].split()[0]

    def exec(self, *command, host_tools=False):
        """As `docker exec` does: a process that joins the box from outside. With `host_tools` it sees this machine's programs."""
        assert self.pid, "not started"
        enter = ["nsenter", "--target", str(self.pid), "--pid", "--net"]
        words = [*enter, *command] if host_tools else [*enter, "--mount", *self.inside(command)]
        return subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL)

    def processes(self):
        """`{pid inside: (name, state, parent)}` of everything in the box."""
        table, proc = {}, f"/proc/{self.pid}/root/proc"
        for pid in filter(str.isdigit, os.listdir(proc)):
            try:
                stat = open(f"{proc}/{pid}/stat").read()
            except OSError:
                continue
            name, rest = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()
            table[int(pid)] = (name, rest[0], int(rest[1]))
        return table

    def zombies(self):
        return [pid for pid, (_, state, _) in self.processes().items() if state == "Z"]

    def stop(self, sign=signal.SIGTERM, seconds=12):
        """As `docker stop` does; the exit code, and how long it took."""
        begun = time.monotonic()
        os.kill(self.pid, sign)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it still runs {seconds} s after {sign.name}:\n{self.text()[-2000:]}") from None
        return code, time.monotonic() - begun

    def wait(self, seconds):
        return self.process.wait(seconds)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # --kill-child: with unshare goes the box's process 1, and with that everything in it.
        end(self.process)
        self.log.close()
        shutil.rmtree(self.files)
