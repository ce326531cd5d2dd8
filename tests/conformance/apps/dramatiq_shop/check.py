"""A Dramatiq application: delayed messages wait in a queue with a TTL whose dead letters go back to work. The broker is in AMQP_URL."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
os.environ.setdefault("SHOP_FOLDER", tempfile.mkdtemp(prefix="dramatiq-"))

import pika
from checks import run, wait_until
from tasks import broker, fail, flaky, note

FOLDER = Path(os.environ["SHOP_FOLDER"])


def start_worker():
    command = [sys.executable, "-m", "dramatiq", "tasks", "--processes", "1", "--threads", "2"]
    log = open(FOLDER / "worker.log", "ab")
    return subprocess.Popen(command, cwd=HERE, stdout=log, stderr=log, start_new_session=True)


def kill(process, with_signal=signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, with_signal)
    process.wait(30)


def lines(name):
    path = FOLDER / name
    return path.read_text().split() if path.exists() else []


def ready(queue):
    with pika.BlockingConnection(pika.URLParameters(os.environ["AMQP_URL"])) as connection:
        return connection.channel().queue_declare(queue, passive=True).method.message_count


def messages_are_worked_on():
    for number in range(100):
        note.send("plain", str(number))
    wait_until("all ran", lambda: len(lines("plain")) == 100)
    assert sorted(lines("plain"), key=int) == [str(number) for number in range(100)]


def delayed_messages_wait_and_come_back():
    note.send_with_options(args=("delayed", "later"), delay=1500)
    note.send("delayed", "now")
    wait_until("both ran", lambda: len(lines("delayed")) == 2)
    assert lines("delayed") == ["now", "later"]


def what_fails_is_tried_again():
    flaky.send("flaky")
    wait_until("the third try", lambda: len(lines("flaky")) == 3)


def what_fails_for_good_is_dead_lettered():
    fail.send()
    wait_until("it is in the dead-letter queue", lambda: ready("default.XQ") == 1)


def work_of_a_killed_worker_is_done_by_another():
    global worker
    note.send("killed", "once", 3)
    wait_until("it began", lambda: lines("killed") == ["once"])
    kill(worker)
    worker = start_worker()
    wait_until("it ran again", lambda: lines("killed") == ["once", "once"])


broker.declare_queue("default", ensure=True)
worker = start_worker()
try:
    run([
        messages_are_worked_on,
        delayed_messages_wait_and_come_back,
        what_fails_is_tried_again,
        what_fails_for_good_is_dead_lettered,
        work_of_a_killed_worker_is_done_by_another,
    ])
finally:
    kill(worker)
    print((FOLDER / "worker.log").read_text(errors="replace")[-3000:])
    for left in FOLDER.iterdir():
        left.unlink()
    FOLDER.rmdir()
