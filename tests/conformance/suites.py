"""The public suites: where each comes from, how it is pointed at a broker, how it runs. Only addresses and ports are changed."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import report
from broker import ROOT, Broker

CACHE = ROOT / "target/conformance"
HERE = Path(__file__).resolve().parent
PREPARE_SECONDS = 1800


@dataclass(frozen=True)
class Suite:
    """`real` is what RabbitMQ 3.10.8 scores: passed, failed, skipped. `settings` are reactor's, as `REACTOR_…`."""

    name: str
    real: str
    run: Callable[[Broker], report.Report]
    repository: str = ""
    commit: str = ""
    needs: tuple[str, ...] = ("amqp",)
    settings: dict[str, str] = field(default_factory=dict)


class Missing(Exception):
    """This machine cannot run the suite; says why."""


def shell(command, folder: Path, environment: dict[str, str] | None = None, seconds: int = PREPARE_SECONDS, check: bool = True) -> str:
    """Runs to the end and returns what was printed; the whole process group ends at the deadline."""
    environment = os.environ | {"no_proxy": "127.0.0.1,localhost", "CI": "1"} | (environment or {})
    process = subprocess.Popen(
        [str(word) for word in command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        output, _ = process.communicate()
        output += f"\nstopped after {seconds} s\n"
        if check:
            raise Missing(f"{command[0]} took longer than {seconds} s") from None
    if check and process.returncode:
        raise Missing(f"{' '.join(map(str, command))}: {output.strip()[-600:]}")
    return output


def source(suite: Suite) -> Path:
    """The suite's repository at its commit, unpatched."""
    folder = CACHE / "src" / suite.name
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / ".git").exists():
        shell(["git", "init", "--quiet"], folder)
    if suite.commit not in shell(["git", "rev-parse", "HEAD"], folder, check=False):
        shell(["git", "fetch", "--quiet", "--depth=1", f"https://github.com/{suite.repository}", suite.commit], folder)
    shell(["git", "-c", "advice.detachedHead=false", "checkout", "--quiet", "--force", suite.commit], folder)
    return folder


def patch(files, *changes: tuple[str, str]) -> None:
    """Replaces patterns in files; a file in which nothing is found is a suite we do not know any more."""
    for file in files:
        text = changed = file.read_text()
        for pattern, replacement in changes:
            changed = re.sub(pattern, replacement, changed)
        if changed != text:
            file.write_text(changed)


def once(folder: Path, name: str, wanted: str, make: Callable[[], None]) -> None:
    """Runs `make` unless it was done for exactly this before."""
    stamp = folder / f".{name}.stamp"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    make()
    stamp.write_text(wanted)


def python(name: str, *packages: str) -> Path:
    """The interpreter of an environment with these packages."""
    folder = CACHE / "venv" / name

    def make() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        shell(["python3", "-m", "venv", folder], CACHE)
        shell([folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *packages], CACHE)
        folder.mkdir(exist_ok=True)

    folder.mkdir(parents=True, exist_ok=True)
    once(folder, "packages", "\n".join(packages), make)
    return folder / "bin/python"


def npm(folder: Path, *packages: str) -> None:
    """The packages of a Node project; its install scripts do not run."""
    wanted = (folder / "package.json").read_text() + "\n".join(packages)
    install = ["npm", "install", "--no-audit", "--no-fund", "--silent", "--ignore-scripts", *packages]
    once(folder, "npm", wanted, lambda: shell(install, folder))


def crate(name: str, version: str) -> Path:
    """The source of a crate as crates.io has it, unpatched."""
    folder, wanting = CACHE / "src" / f"{name}-{version}", CACHE / "src" / f"wants-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    (wanting / "src").mkdir(parents=True, exist_ok=True)
    (wanting / "src/lib.rs").touch()
    (wanting / "Cargo.toml").write_text(f'[workspace]\n[package]\nname = "wanting"\nedition = "2024"\n[dependencies]\n{name} = "={version}"\n')
    packages = json.loads(shell(["cargo", "metadata", "--quiet", "--format-version=1"], wanting))["packages"]
    (manifest,) = (package["manifest_path"] for package in packages if package["name"] == name)
    shutil.copytree(Path(manifest).parent, folder)
    return folder


def debian(*programs: str) -> None:
    """Debian packages as `program:package`."""
    missing = [pair.split(":")[1] for pair in programs if not (shutil.which(pair.split(":")[0]) or Path(pair.split(":")[0]).is_file())]
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise Missing(f"needs {', '.join(missing)}")
    as_root = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
    shell([*as_root, "apt-get", "install", "-yq", *missing], ROOT, {"DEBIAN_FRONTEND": "noninteractive"})


def result_file(name: str) -> Path:
    file = CACHE / "results" / f"{name}.xml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    return file


def keep(name: str, output: str) -> str:
    file = CACHE / "results" / f"{name}.log"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(output)
    return output


def pytest(suite: Suite, interpreter: Path, folder: Path, arguments, environment=None, seconds: int = 1500) -> report.Report:
    file = result_file(suite.name)
    command = [interpreter, "-m", "pytest", "-q", f"--junitxml={file}", *arguments]
    keep(suite.name, shell(command, folder, environment, seconds, check=False))
    return report.junit([file])


def pika(broker: Broker) -> report.Report:
    suite = SUITES["pika"]
    folder = source(suite)
    files = [*(folder / "tests/acceptance").glob("*.py"), folder / "tests/base/async_test_base.py"]
    patch(files, (r"\b5672\b", str(broker.ports["amqp"])))
    interpreter = python("pika", "pytest", "pytest-timeout", "gevent", "tornado", "twisted")
    return pytest(suite, interpreter, folder, ["tests/acceptance", "--timeout=60"])


def amqplib(broker: Broker) -> report.Report:
    suite = SUITES["amqplib"]
    folder = source(suite)
    files = [folder / f"test/{name}.test.js" for name in ("channel_api", "callback_api", "connect", "recovery")]
    patch([folder / "lib/connect.js"], (r"\b5672\b", str(broker.ports["amqp"])))
    npm(folder)
    file = result_file(suite.name)
    command = ["node", "--test", "--test-timeout=60000", "--test-reporter=junit", f"--test-reporter-destination={file}", *files]
    keep(suite.name, shell(command, folder, None, 300, check=False))
    return report.junit([file])


def amqp_client_js(broker: Broker) -> report.Report:
    suite = SUITES["amqp-client.js"]
    folder = source(suite)
    files = [folder / f"test/{name}.ts" for name in ("amqp-codec-registry", "amqp-session", "test", "type-safety")]
    amqp, http = str(broker.ports["amqp"]), str(broker.ports["management"])
    patch(files, (r"\b15672\b", http), (r"(?<=amqp://127\.0\.0\.1)(?=[\"?])", f":{amqp}"), (r"\b5672\b", amqp))
    npm(folder)
    file = result_file(suite.name)
    command = ["npx", "vitest", "run", "--reporter=junit", f"--outputFile={file}", *files]
    keep(suite.name, shell(command, folder, None, 600, check=False))
    return report.junit([file])


def py_amqp(broker: Broker) -> report.Report:
    suite = SUITES["py-amqp"]
    folder = source(suite)
    interpreter = python("py-amqp", "pytest<=8.0.0", "pytest-rerunfailures", "vine>=5,<6")
    environment = {"RABBITMQ_HOST": "127.0.0.1", "RABBITMQ_5672_TCP": str(broker.ports["amqp"])}
    environment["RABBITMQ_5671_TCP"] = str(broker.ports["amqps"])
    arguments = ["t/integration/test_rmq.py", "-E", "rabbitmq", "-k", "not tls", "-p", "no:cacheprovider"]
    return pytest(suite, interpreter, folder, arguments, environment, 300)


AIO_PIKA_BROKER = """

def pytest_configure(config):
    pass


@pytest.fixture(scope="session")
def rabbitmq_container():
    return ContainerInfo(id="", ports={{"5672/tcp": {amqp}, "5671/tcp": {amqps}}}, host="127.0.0.1")
"""


def aio_pika(broker: Broker) -> report.Report:
    suite = SUITES["aio-pika"]
    folder = source(suite)
    with open(folder / "tests/conftest.py", "a") as file:
        file.write(AIO_PIKA_BROKER.format(**broker.ports))
    packages = ("aio-pika==9.6.0", "aiormq>=6.8,<7", "yarl", "aiomisc>=18.0", "aiomisc-pytest", "pytest", "pytest-rst", "pytest-timeout", "shortuuid")
    interpreter = python("aio-pika", *packages)
    return pytest(suite, interpreter, folder, ["tests", "--timeout=120"], {"PYTHONPATH": str(folder)})


PHP_AUTOLOAD = """<?php
require_once '/usr/share/php/phpseclib3/autoload.php';
spl_autoload_register(function ($name) {
    $places = ['PhpAmqpLib\\\\Tests\\\\' => '/tests/', 'PhpAmqpLib\\\\' => '/PhpAmqpLib/'];
    foreach ($places as $prefix => $place) {
        $file = dirname(__DIR__) . $place . str_replace('\\\\', '/', substr($name, strlen($prefix))) . '.php';
        if (str_starts_with($name, $prefix) && is_file($file)) { require_once $file; return; }
    }
});
"""


NOT_SSL = "/^((?!SSLConnectionTest).)*$/"  # wants certificates of its own on 5671


def php_amqplib(broker: Broker) -> report.Report:
    suite = SUITES["php-amqplib"]
    debian("phpunit:phpunit", "php:php-cli", "/usr/share/php/phpseclib3/autoload.php:php-phpseclib3")
    folder = source(suite)
    (folder / "vendor").mkdir(exist_ok=True)
    (folder / "vendor/autoload.php").write_text(PHP_AUTOLOAD)
    file = result_file(suite.name)
    environment = {"TEST_RABBITMQ_HOST": "localhost", "TEST_RABBITMQ_PORT": str(broker.ports["amqp"])}
    command = ["phpunit", "--no-configuration", "--bootstrap", "tests/bootstrap.php", "--exclude-group", "proxy,management", "--filter", NOT_SSL]
    keep(suite.name, shell([*command, "--log-junit", file, "tests/Functional"], folder, environment, 600, check=False))
    return report.junit([file])


def lapin(broker: Broker) -> report.Report:
    suite = SUITES["lapin"]
    folder = source(suite)
    environment = {"AMQP_ADDR": f"{broker.url}/%2f", "CARGO_TARGET_DIR": str(CACHE / "cargo"), "CARGO_TERM_COLOR": "never"}
    # Examples have a test as well, which ends; as programs some run until they are stopped.
    tests = ["cargo", "test", "--no-fail-fast", "--tests", "--examples"]
    shell([*tests, "--no-run"], folder, environment)
    return report.cargo(keep(suite.name, shell(tests, folder, environment, 600, check=False)))


SUITES = {
    suite.name: suite
    for suite in (
        Suite("pika", "560 · 1 · 40", pika, "pika/pika", "2126d43a76c14fb8d365d96bd1bdcef13dad75b5"),
        Suite("amqplib", "80 · 0 · 0", amqplib, "amqp-node/amqplib", "f7503e571a80dacfc863c2690ab797d31667b868"),
        Suite("py-amqp", "10 · 0 · 0", py_amqp, "celery/py-amqp", "a03ad34f9b620773f50a4e19f26382bc23140e63"),
        Suite("amqp-client.js", "246 · 0 · 2", amqp_client_js, "cloudamqp/amqp-client.js", "67b3ba3118b7699fd52210ce4e5a71d482c46c56"),
        Suite("aio-pika", "884 · 0 · 27", aio_pika, "mosquito/aio-pika", "0a9f24c9349f9158a959bf1e64d2c909350727d7"),
        Suite("php-amqplib", "69 · 1 · 0", php_amqplib, "php-amqplib/php-amqplib", "a82bc9dc8f1e108eaa67af9a69c443b911145ac9"),
        Suite("lapin", "14 · 0 · 0", lapin, "amqp-rs/lapin", "70611e8f4085da2f15acaa781fc2bf79bf36b484"),
    )
}
