"""worker: packs what was ordered. A queue of its own, `worker.orders`, gets every `order.placed`; instances share it. Packed orders
are told by the event `order.shipped`."""

import json
import os
import random
import signal
import sys
import time

import pika

AMQP = os.environ.get("AMQP_URL", "amqp://guest:guest@localhost")
ME = os.environ.get("REACTOR_INSTANCE", "worker")


def pack(channel, delivery, properties, body):
    order = json.loads(body)
    time.sleep(random.uniform(0.05, 0.15) * min(order["quantity"], 5))
    event = pika.BasicProperties(content_type="application/json", message_id=order["id"], delivery_mode=2)
    channel.basic_publish("reactor.event", "order.shipped", json.dumps({"id": order["id"], "packed_by": ME}), event)
    channel.basic_ack(delivery.delivery_tag)
    print(f"INFO packed {order['quantity']} x {order['product']} for order {order['id']}")


def serve():
    connection = pika.BlockingConnection(pika.URLParameters(AMQP))
    try:
        channel = connection.channel()
        channel.queue_declare("worker.orders", durable=True)
        channel.queue_bind("worker.orders", "reactor.event", "order.placed")
        channel.basic_qos(prefetch_count=1)
        channel.basic_consume("worker.orders", pack)
        print("INFO waiting for orders")
        channel.start_consuming()
    finally:
        if connection.is_open:
            connection.close()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        try:
            serve()
        except pika.exceptions.AMQPError as error:
            print(f"ERROR bus: {error!r}; trying again")
            time.sleep(1)
