"""Celery's dashboard in use: two workers of the shop and Flower, asked over its HTTP API. AMQP_URL and MANAGEMENT_URL say where the broker is."""

import base64
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
SHOP = HERE.parent / "celery_shop"
sys.path[:0] = [str(SHOP), str(HERE.parent)]

from checks import run, wait_until
from tasks import app, note

FOLDER = Path(tempfile.mkdtemp(prefix="flower-"))
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
processes = []


def start(name, *arguments, **environment):
    log = open(FOLDER / f"{name}.log", "wb")
    command = [sys.executable, "-m", "celery", "-A", "tasks", *arguments]
    process = subprocess.Popen(command, cwd=SHOP, env=os.environ | environment, stdout=log, stderr=log, start_new_session=True)
    processes.append(process)
    return process


def start_worker(name, *arguments):
    worker = start(name, "worker", "-n", f"{name}@shop", "-l", "INFO", "-E", "--heartbeat-interval", "1", *arguments)
    wait_until(f"worker {name} answers a ping", lambda: app.control.ping([f"{name}@shop"], timeout=0.5), 60)
    return worker


def start_flower(name, broker_api):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [f"--port={port}", "--address=127.0.0.1", f"--broker-api={broker_api}", "--inspect-timeout=5000"]
    start(name, "flower", *options, FLOWER_UNAUTHENTICATED_API="true")
    flower = Flower(f"http://127.0.0.1:{port}")
    wait_until(f"{name} is up", flower.healthy, 60)
    return flower


class Flower:
    def __init__(self, url):
        self.url = url

    def get(self, path):
        with OPENER.open(self.url + path, timeout=30) as response:
            return response.read().decode()

    def json(self, path):
        return json.loads(self.get(path))

    def post(self, path, body=None, **form):
        data = json.dumps(body).encode() if body is not None else urllib.parse.urlencode(form).encode()
        with OPENER.open(urllib.request.Request(self.url + path, data, method="POST"), timeout=30) as response:
            return json.loads(response.read())

    def healthy(self):
        with contextlib.suppress(OSError):
            return self.get("/healthcheck") == "OK"

    def lengths(self):
        return {queue["name"]: queue for queue in self.json("/api/queues/length")["active_queues"]}


def management(login="guest:guest"):
    return os.environ["MANAGEMENT_URL"].replace("://", f"://{login}@") + "/"


def queue_of_broker(name):
    request = urllib.request.Request(f"{os.environ['MANAGEMENT_URL']}/queues/%2F/{name}")
    request.add_header("authorization", "Basic " + base64.b64encode(b"guest:guest").decode())
    with OPENER.open(request, timeout=10) as response:
        return json.load(response)


def workers_are_seen():
    seen = wait_until("both workers", lambda: (all_ := flower.json("/api/workers?refresh=1")).keys() >= {"main@shop", "slow@shop"} and all_)
    assert {queue["name"] for queue in seen["main@shop"]["active_queues"]} == {"celery"}, seen["main@shop"]
    assert "tasks.add" in seen["main@shop"]["registered"]
    alive = {"main@shop": True, "slow@shop": True}
    wait_until("a heartbeat of both", lambda: flower.json("/api/workers?status=1") == alive)


def the_broker_says_how_long_queues_are():
    path = FOLDER / "order"
    busy = note.apply_async((str(path), "busy", 5), queue="urgent")
    wait_until("the worker is busy", path.exists)
    waiting = [note.apply_async((str(path), str(number)), queue="urgent") for number in range(4)]
    # The busy task is held unacknowledged, and one more is prefetched.
    lengths = wait_until("five in the queue", lambda: (found := flower.lengths()).get("urgent", {}).get("messages") == 5 and found)
    assert lengths.keys() == {"celery", "urgent"}, lengths
    urgent = lengths["urgent"]
    assert (urgent["messages_ready"] + urgent["messages_unacknowledged"], urgent["consumers"]) == (5, 1), urgent
    for task in [busy, *waiting]:
        task.get(timeout=30)
    wait_until("nothing in the queue", lambda: flower.lengths()["urgent"]["messages"] == 0)


def the_page_of_the_broker_lists_its_queues():
    page = flower.get("/broker")
    for name in ("celery", "urgent"):
        assert f'<tr id="{name}">' in page, page[-2000:]
    assert "No queue data" not in page


def tasks_are_sent_and_their_results_read():
    assert flower.post("/api/task/apply/tasks.add", {"args": [20, 22]})["result"] == 42
    for how in ("async-apply", "send-task"):
        sent = flower.post(f"/api/task/{how}/tasks.add", {"args": [2, 3]})
        assert told(sent["task-id"])["result"] == "5"


def told(task):
    """What its events say of a task that ended well."""

    def ended():
        with contextlib.suppress(urllib.error.HTTPError):
            information = flower.json(f"/api/task/info/{task}")
            return information["state"] == "SUCCESS" and information

    return wait_until("the events of the task", ended)


def tasks_are_told_by_their_events():
    task = app.tasks["tasks.add"].delay(7, 8)
    assert task.get(timeout=20) == 15
    information = told(task.id)
    assert (information["name"], information["worker"], information["result"]) == ("tasks.add", "main@shop", "15"), information
    assert task.id in flower.json("/api/tasks?taskname=tasks.add")
    assert "tasks.add" in flower.json("/api/task/types")["task-types"]


def a_task_is_revoked():
    path = FOLDER / "revoked"
    busy = note.apply_async((str(path), "busy", 3), queue="urgent")
    wait_until("the worker is busy", path.exists)
    late = note.apply_async((str(path), "late"), queue="urgent")
    flower.post(f"/api/task/revoke/{late.id}")
    busy.get(timeout=20)
    assert note.apply_async((str(path), "after"), queue="urgent").get(timeout=20) == "after"
    assert path.read_text().split() == ["busy", "after"]


def a_worker_takes_up_and_leaves_a_queue():
    flower.post("/api/worker/queue/add-consumer/main@shop", queue="extra")
    wait_until("the broker has the consumer", lambda: queue_of_broker("extra").get("consumers") == 1)
    wait_until("Flower shows the queue", lambda: flower.json("/api/workers?refresh=1") and "extra" in flower.lengths())
    flower.post("/api/worker/queue/cancel-consumer/main@shop", queue="extra")
    wait_until("the broker lost the consumer", lambda: queue_of_broker("extra").get("consumers") == 0)


def main_worker():
    return flower.json("/api/workers?refresh=1&workername=main@shop")["main@shop"]


def a_worker_is_tuned():
    flower.post("/api/worker/pool/grow/main@shop", n=1)
    wait_until("three processes", lambda: len(main_worker()["stats"]["pool"]["processes"]) == 3)
    flower.post("/api/worker/pool/shrink/main@shop", n=1)
    flower.post("/api/task/rate-limit/tasks.add", workername="main@shop", ratelimit="100/s")
    flower.post("/api/task/timeout/tasks.add", workername="main@shop", hard=30)


def metrics_count_events():
    metrics = flower.get("/metrics")
    assert 'flower_events_total{task="tasks.add",type="task-succeeded",worker="main@shop"}' in metrics, metrics
    assert 'flower_worker_online{worker="main@shop"} 1.0' in metrics, metrics


def a_login_that_is_refused_shows_no_queues():
    assert start_flower("stranger", management("guest:wrong")).lengths() == {}


def a_worker_is_stopped():
    flower.post("/api/worker/shutdown/slow@shop")
    assert slow.wait(30) == 0
    wait_until("nobody consumes", lambda: queue_of_broker("urgent").get("consumers") == 0)
    wait_until("Flower sees it", lambda: flower.json("/api/workers?status=1").get("slow@shop") is False, 60)


try:
    start_worker("main", "-c", "2", "-Q", "celery")
    slow = start_worker("slow", "-c", "1", "-Q", "urgent")
    flower = start_flower("flower", management())
    run([
        workers_are_seen,
        the_broker_says_how_long_queues_are,
        the_page_of_the_broker_lists_its_queues,
        tasks_are_sent_and_their_results_read,
        tasks_are_told_by_their_events,
        a_task_is_revoked,
        a_worker_takes_up_and_leaves_a_queue,
        a_worker_is_tuned,
        metrics_count_events,
        a_login_that_is_refused_shows_no_queues,
        a_worker_is_stopped,
    ])
finally:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
    for file in sorted(FOLDER.iterdir()):
        if file.suffix == ".log":
            print(f"--- {file.name}", *file.read_text(errors="replace").splitlines()[-25:], sep="\n")
        file.unlink()
    FOLDER.rmdir()
