"""What monitors look at: a connection that publishes, takes and acknowledges ten messages a second until its input ends.

Queue `orders` keeps three ready messages and two that are held; `work` is what passes through. AMQP_URL says where the broker is."""

import os
import select
import sys

import pika

PAUSE_SECONDS = 0.1

connection = pika.BlockingConnection(pika.URLParameters(os.environ["AMQP_URL"] + "/%2F"))
channel = connection.channel()
channel.confirm_delivery()
channel.basic_qos(prefetch_count=2)
for queue in ("orders", "work"):
    channel.queue_declare(queue, durable=True)
for number in range(5):
    channel.basic_publish("", "orders", b"order %d" % number)
held = connection.channel()
held.basic_qos(prefetch_count=2)
held.basic_consume("orders", lambda *delivery: None)
channel.basic_consume("work", lambda channel, method, *_: channel.basic_ack(method.delivery_tag))
print("running", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    channel.basic_publish("", "work", b"work")
    connection.sleep(PAUSE_SECONDS)
connection.close()
