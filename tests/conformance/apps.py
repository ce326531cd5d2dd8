"""Frameworks in use: programs of our own under `apps/`, each a real application with its workers. They print a line a check."""

import report
import suites
from broker import Broker
from suites import CACHE, HERE, Suite, keep, npm, python, shell

APPS = HERE / "apps"


def in_python(name: str, program: str, packages: tuple[str, ...], broker: Broker) -> report.Report:
    interpreter = python(name, *packages)
    environment = {"AMQP_URL": broker.url, "MANAGEMENT_URL": broker.api}
    output = shell([interpreter, APPS / program], APPS, environment, 600, check=False)
    return report.lines(keep(name, output))


def celery(broker: Broker) -> report.Report:
    return in_python("celery", "celery_shop/check.py", ("celery>=5.5,<6",), broker)


def flower(broker: Broker) -> report.Report:
    return in_python("flower", "celery_flower/check.py", ("celery>=5.5,<6", "flower==2.2.0"), broker)


def dramatiq(broker: Broker) -> report.Report:
    return in_python("dramatiq", "dramatiq_shop/check.py", ("dramatiq[rabbitmq]>=1.17,<3",), broker)


def nestjs(broker: Broker) -> report.Report:
    folder = CACHE / "src/nestjs"
    folder.mkdir(parents=True, exist_ok=True)
    for file in (APPS / "nestjs").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    npm(folder)
    shell(["npx", "tsc"], folder)
    environment = {"AMQP_URL": broker.url}
    if broker.serves("management"):
        environment["MANAGEMENT_URL"] = broker.api
    return report.lines(keep("nestjs", shell(["node", "built/check.js"], folder, environment, 300, check=False)))


SUITES = {
    suite.name: suite
    for suite in (
        Suite("celery", "11 · 0 · 0", celery),
        Suite("flower", "11 · 0 · 0", flower, needs=("amqp", "management")),
        Suite("nestjs", "9 · 0 · 0", nestjs),
        Suite("dramatiq", "5 · 0 · 0", dramatiq),
    )
}
