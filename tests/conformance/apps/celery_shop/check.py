"""Starts workers of `tasks` and uses them. The broker is in AMQP_URL."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from celery import chain, group
from checks import run, wait_until
from tasks import add, app, note, refuse, third_time

FOLDER = Path(tempfile.mkdtemp(prefix="celery-"))
workers = []


def start_worker(name, *arguments):
    command = [sys.executable, "-m", "celery", "-A", "tasks", "worker", "-n", f"{name}@shop", "-l", "INFO", "-E", *arguments]
    log = open(FOLDER / f"{name}.log", "wb")
    worker = subprocess.Popen(command, cwd=HERE, stdout=log, stderr=log, start_new_session=True)
    workers.append(worker)
    wait_until(f"worker {name} answers a ping", lambda: app.control.ping([f"{name}@shop"], timeout=0.5), 60)
    return worker


def kill(worker, with_signal=signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(worker.pid, with_signal)
    worker.wait(30)


def lines(path):
    return path.read_text().split() if path.exists() else []


def results_come_back():
    assert add.delay(2, 3).get(timeout=20) == 5
    many = group(add.s(number, number) for number in range(200))().get(timeout=60)
    assert many == [2 * number for number in range(200)]


def chains_pass_results_on():
    assert chain(add.s(1, 2), add.s(10), add.s(100))().get(timeout=20) == 113


def errors_come_back():
    try:
        refuse.delay("no").get(timeout=20)
        raise AssertionError("no error came back")
    except ValueError as error:
        assert str(error) == "no"


def retries_and_countdowns_run_later():
    assert third_time.delay().get(timeout=30) == 2
    assert add.apply_async((1, 1), countdown=1).get(timeout=20) == 2


def events_tell_what_happens():
    seen, ready, enough = [], threading.Event(), threading.Event()

    def keep(event):
        seen.append(event["type"])
        if {"task-sent", "task-received", "task-started", "task-succeeded", "worker-heartbeat"} <= set(seen):
            enough.set()

    class Receiver(app.events.Receiver):
        def on_consume_ready(self, *arguments, **named):
            ready.set()

    def capture():
        with app.connection() as connection:
            receiver = Receiver(connection, handlers={"*": keep})
            receiver.should_stop = False
            for _ in receiver.itercapture(limit=None, timeout=None, wakeup=False):
                receiver.should_stop = enough.is_set()

    thread = threading.Thread(target=capture, daemon=True)
    thread.start()
    assert ready.wait(20)
    add.delay(1, 1).get(timeout=20)
    assert enough.wait(30), seen


def workers_are_inspected_and_controlled():
    inspect = app.control.inspect(timeout=5)
    # On a busy machine a worker may take longer to answer than Celery waits.
    stats, registered, active = (wait_until("an answer", ask) for ask in (inspect.stats, inspect.registered, inspect.active_queues))
    assert stats["main@shop"]["pool"]["max-concurrency"] == 2
    assert "tasks.add" in registered["main@shop"]
    queues = {queue["name"]: queue for queue in active["main@shop"]}
    assert set(queues) == {"celery", "durable"}, queues


def high_priorities_go_first():
    path = FOLDER / "order"
    for priority in (1, 5, 9, 3):
        note.apply_async((str(path), str(priority)), queue="urgent", priority=priority)
    single = start_worker("single", "-c", "1", "-Q", "urgent")
    wait_until("all four ran", lambda: len(lines(path)) == 4)
    kill(single)
    assert lines(path) == ["9", "5", "3", "1"], lines(path)


def revoked_tasks_do_not_run():
    path = FOLDER / "revoked"
    single = start_worker("revoking", "-c", "1", "-Q", "urgent")
    busy = note.apply_async((str(path), "busy", 3), queue="urgent")
    wait_until("the worker is busy", lambda: lines(path) == ["busy"])
    late = note.apply_async((str(path), "late"), queue="urgent")
    late.revoke()
    busy.get(timeout=20)
    assert note.apply_async((str(path), "after"), queue="urgent").get(timeout=20) == "after"
    kill(single)
    assert lines(path) == ["busy", "after"], lines(path)


def work_of_a_killed_worker_is_done_by_another():
    path = FOLDER / "killed"
    doomed = start_worker("doomed", "-c", "1", "-Q", "urgent")
    result = note.apply_async((str(path), "once", 2), queue="urgent")
    wait_until("it began", lambda: lines(path) == ["once"])
    kill(doomed)
    heir = start_worker("heir", "-c", "1", "-Q", "urgent")
    assert result.get(timeout=30) == "once"
    kill(heir)
    assert lines(path) == ["once", "once"], "delivered again, and only once more"


def quorum_queues_carry_tasks():
    assert add.apply_async((20, 22), queue="durable").get(timeout=20) == 42


def a_stopped_worker_finishes_what_it_began():
    path = FOLDER / "warm"
    worker = start_worker("warm", "-c", "1", "-Q", "urgent")
    result = note.apply_async((str(path), "finished", 2), queue="urgent")
    wait_until("it began", lambda: lines(path) == ["finished"])
    worker.send_signal(signal.SIGTERM)
    assert result.get(timeout=20) == "finished"
    worker.wait(30)
    assert lines(path) == ["finished"]


try:
    main = start_worker("main", "-c", "2", "-Q", "celery,durable", "--heartbeat-interval", "1")
    run([
        results_come_back,
        chains_pass_results_on,
        errors_come_back,
        retries_and_countdowns_run_later,
        events_tell_what_happens,
        workers_are_inspected_and_controlled,
        high_priorities_go_first,
        revoked_tasks_do_not_run,
        work_of_a_killed_worker_is_done_by_another,
        quorum_queues_carry_tasks,
        a_stopped_worker_finishes_what_it_began,
    ])
finally:
    for worker in workers:
        kill(worker)
    for log in FOLDER.glob("*.log"):
        print(f"--- {log.name}", *log.read_text(errors="replace").splitlines()[-15:], sep="\n")
        log.unlink()
    for left in FOLDER.iterdir():
        left.unlink()
    FOLDER.rmdir()
