"""What the Python programs here share: checks by name, one line each, and waiting with a deadline."""

import sys
import time
import traceback

DEADLINE = 30.0


def wait_until(what: str, condition, deadline: float = DEADLINE):
    """The first true value of the condition."""
    until = time.monotonic() + deadline
    while not (value := condition()):
        assert time.monotonic() < until, f"not within {deadline:.0f} s: {what}"
        time.sleep(0.05)
    return value


def run(checks) -> None:
    """Runs every function of `checks` and prints `ok NAME` or `not ok NAME # why`."""
    for check in checks:
        name = check.__name__.replace("_", " ")
        try:
            check()
        except Exception as error:
            traceback.print_exc()
            why = " ".join(f"{type(error).__name__}: {error}".split())
            print(f"not ok {name} # {why[:300]}", flush=True)
        else:
            print(f"ok {name}", flush=True)
    sys.stdout.flush()
