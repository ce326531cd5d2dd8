"""Clients in languages that have no suite to fetch: Java, Go, C and Ruby, all from Debian. Go's library brings its own tests;
the others run programs of our own under `apps/`, which print a line a check."""

import os
import shutil
from pathlib import Path

import report
from broker import Broker
from suites import CACHE, HERE, Suite, debian, keep, patch, shell

APPS = HERE / "apps"
AMQP_JAR = "/usr/share/java/amqp-client.jar"
SLF4J_JAR = "/usr/share/java/slf4j-api.jar"
GO_PATH = Path("/usr/share/gocode")
GO_PACKAGE = "src/github.com/rabbitmq/amqp091-go"


def addresses(broker: Broker) -> dict[str, str]:
    return {"AMQP_URL": broker.url, "AMQP_PORT": str(broker.ports["amqp"]), "MANAGEMENT_URL": broker.api}


def java(broker: Broker) -> report.Report:
    debian("javac:openjdk-17-jdk-headless", f"{AMQP_JAR}:librabbitmq-client-java", f"{SLF4J_JAR}:libslf4j-java")
    classes = CACHE / "java"
    shutil.rmtree(classes, ignore_errors=True)
    shell(["javac", "-cp", AMQP_JAR, "-d", classes, *sorted((APPS / "java").glob("*.java"))], APPS)
    environment = addresses(broker)
    if broker.control:
        environment["ALARM_ON"] = f"{broker.control} set_vm_memory_high_watermark 0.000001"
        environment["ALARM_OFF"] = f"{broker.control} set_vm_memory_high_watermark 0.4"
    command = ["java", "-cp", f"{classes}:{AMQP_JAR}:{SLF4J_JAR}", "Main"]
    return report.lines(keep("java", shell(command, APPS, environment, 120, check=False)))


def go(broker: Broker) -> report.Report:
    """Its unit tests run too; examples dial a fixed address."""
    debian("go:golang-go", f"{GO_PATH / GO_PACKAGE}/doc.go:golang-github-rabbitmq-amqp091-go-dev", f"{GO_PATH}/src/go.uber.org/goleak/leaks.go:golang-uber-goleak-dev")
    folder = CACHE / "go" / GO_PACKAGE
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(GO_PATH / GO_PACKAGE, folder)
    patch(folder.glob("example*_test.go"), (r"\b5672\b", str(broker.ports["amqp"])))
    environment = addresses(broker) | {"GO111MODULE": "off", "GOPATH": f"{CACHE / 'go'}:{GO_PATH}", "GOCACHE": str(CACHE / "go/cache")}
    command = ["go", "test", "-tags", "integration", "-count=1", "-timeout=300s", "-v", "."]
    return report.go(keep("amqp091-go", shell(command, folder, environment, 900, check=False)))


def program(name: str, command: list, *packages: str):
    def run(broker: Broker) -> report.Report:
        debian(*packages)
        return report.lines(keep(name, shell(command, APPS, os.environ | addresses(broker), 300, check=False)))

    return run


C = program("amqp-tools", ["bash", APPS / "amqp_tools.sh"], "amqp-publish:amqp-tools")
RUBY = program("bunny", ["ruby", APPS / "bunny.rb"], "ruby:ruby", "/usr/share/doc/ruby-bunny/copyright:ruby-bunny")

SUITES = {
    suite.name: suite
    for suite in (
        Suite("java", "48 · 0 · 0", java, needs=("amqp", "management"), settings={"REACTOR_LIMITS_QUEUE_BYTES_MAX": "64MiB"}),
        Suite("amqp091-go", "116 · 0 · 0", go),
        Suite("amqp-tools", "11 · 0 · 0", C),
        Suite("bunny", "12 · 0 · 0", RUBY),
    )
}
