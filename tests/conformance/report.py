"""What a suite's own runner reported, in one form."""

import re
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Report:
    """Test names by outcome; `error` when the suite itself could not run."""

    passed: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)
    error: str = ""

    def add(self, name: str, outcome: str, message: str = "") -> None:
        # A name twice is two cases of one test: the later gets a number.
        number, unique = 2, name
        while unique in self.passed or unique in self.failed or unique in self.skipped:
            number, unique = number + 1, f"{name} #{number}"
        if outcome == "failed":
            self.failed[unique] = message
        else:
            getattr(self, outcome).add(unique)


def settled(ask, is_right, seconds: float):
    """The first answer that is right, or the last one within the time that statistics may lag behind."""
    until = time.monotonic() + seconds
    while not is_right(answer := ask()) and time.monotonic() < until:
        time.sleep(0.5)
    return answer


def junit(files: list[Path]) -> Report:
    """pytest, node, vitest and phpunit write this."""
    report = Report()
    for file in files:
        if not file.exists() or not file.stat().st_size:
            report.error = f"no result in {file.name}"
            continue
        try:
            cases = list(ElementTree.parse(file).iter("testcase"))
        except ElementTree.ParseError as error:
            report.error = f"{file.name} is cut off: {error}"
            continue
        for case in cases:
            name = " ".join(part for part in (case.get("classname"), case.get("name")) if part)
            problems = [problem for kind in ("failure", "error") for problem in case.findall(kind)]
            if problems:
                message, text = problems[0].get("message") or "", problems[0].text or ""
                report.add(name, "failed", text if "more lines; full report" in message else message or text)
            elif case.find("skipped") is not None:
                report.add(name, "skipped")
            else:
                report.add(name, "passed")
    if not report.error and not (report.passed or report.failed):
        report.error = "no test ran"
    return report


CARGO_LINE = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)", re.MULTILINE)
CARGO_BINARY = re.compile(r"^\s+Running (?:tests/|unittests )?(\S+?)(?:\.rs)? \(", re.MULTILINE)


def cargo(output: str) -> Report:
    """`cargo test`: one line a test, under the name of its binary."""
    report, binary = Report(), ""
    for line in output.splitlines():
        if started := CARGO_BINARY.match(line):
            binary = started.group(1)
        elif case := CARGO_LINE.match(line):
            outcome = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}[case.group(2)]
            report.add(f"{binary} {case.group(1)}", outcome, panic_of(output, case.group(1)))
    if not (report.passed or report.failed):
        report.error = "no test ran"
    return report


def panic_of(output: str, test: str) -> str:
    found = re.search(rf"^---- {re.escape(test)} stdout ----\n(.*?)(?=\n---- |\n\nfailures:|\Z)", output, re.MULTILINE | re.DOTALL)
    return found.group(1).strip() if found else ""


GO_LINE = re.compile(r"^--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)


def go(output: str) -> Report:
    """`go test -v`: a line a test, below what it printed; its cases are not counted."""
    report, before = Report(), 0
    for case in GO_LINE.finditer(output):
        outcome = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}[case.group(1)]
        report.add(case.group(2), outcome, output[before : output.find("\n=== RUN", case.end())][-2000:])
        before = case.end()
    if stopped := re.search(r"^(panic: .*|FAIL\s.*\[build failed\].*|goleak: .*)$", output, re.MULTILINE):
        report.error = stopped.group(1)
    elif not (report.passed or report.failed):
        report.error = "no test ran"
    return report


LINE = re.compile(r"^(ok|not ok|skip) (.+?)(?: # (.*))?$", re.MULTILINE)


def lines(output: str) -> Report:
    """Our own programs: `ok NAME`, `not ok NAME # why`, `skip NAME # why`."""
    report = Report()
    for outcome, name, why in LINE.findall(output):
        report.add(name, {"ok": "passed", "not ok": "failed", "skip": "skipped"}[outcome], why)
    if not (report.passed or report.failed):
        report.error = "no check ran"
    return report
