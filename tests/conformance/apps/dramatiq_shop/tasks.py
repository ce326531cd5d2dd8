"""The actors, imported by the worker and by the check."""

import os
import time
from pathlib import Path

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker

broker = RabbitmqBroker(url=os.environ["AMQP_URL"], max_priority=10)
dramatiq.set_broker(broker)
FOLDER = Path(os.environ["SHOP_FOLDER"])


@dramatiq.actor
def note(name, word, seconds=0.0):
    with open(FOLDER / name, "a") as file:
        file.write(f"{word}\n")
    time.sleep(seconds)


@dramatiq.actor(max_retries=5, min_backoff=100, max_backoff=200)
def flaky(name):
    with open(FOLDER / name, "a") as file:
        file.write("tried\n")
    if len((FOLDER / name).read_text().split()) < 3:
        raise RuntimeError("not yet")


@dramatiq.actor(max_retries=0)
def fail():
    raise RuntimeError("never")
