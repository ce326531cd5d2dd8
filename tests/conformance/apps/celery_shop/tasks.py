"""A Celery application as people write it: late acks, results over rpc://, a queue with priorities, task events."""

import os
import time

from celery import Celery
from kombu import Queue

app = Celery("shop", broker=os.environ["AMQP_URL"] + "//", backend="rpc://")
app.conf.update(
    broker_heartbeat=4,
    broker_connection_retry_on_startup=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_send_sent_event=True,
    task_track_started=True,
    worker_prefetch_multiplier=1,
    worker_send_task_events=True,
    result_expires=60,
    task_queues=[
        Queue("celery"),
        Queue("urgent", queue_arguments={"x-max-priority": 10}),
        Queue("durable", queue_arguments={"x-queue-type": "quorum"}),
    ],
)


@app.task
def add(a, b):
    return a + b


@app.task
def refuse(what):
    raise ValueError(what)


@app.task(bind=True, max_retries=3)
def third_time(self):
    if self.request.retries < 2:
        raise self.retry(countdown=0.1)
    return self.request.retries


@app.task
def note(path, word, seconds=0.0):
    """Leaves a line in a file, then works for a while."""
    with open(path, "a") as file:
        file.write(f"{word}\n")
    time.sleep(seconds)
    return word
