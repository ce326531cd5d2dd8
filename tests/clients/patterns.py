"""The patterns of RabbitMQ's tutorials through pika. Usage: patterns.py AMQP_URL PATTERN

Exits with 0 when the pattern held, with a traceback when it did not, killed when it hung.
"""

import signal
import sys

import pika
from pika.exceptions import ChannelClosedByBroker, UnroutableError

URL, PATTERN = sys.argv[1], sys.argv[2]
QUORUM = {"x-queue-type": "quorum"}


class Peer:
    """One connection with one channel, and what its consumer got."""

    def __init__(self, prefetch=0):
        self.connection = pika.BlockingConnection(pika.URLParameters(URL))
        self.channel = self.connection.channel()
        self.got = []
        if prefetch:
            self.channel.basic_qos(prefetch_count=prefetch)

    def consume(self, queue, auto_ack=False):
        def keep(_channel, method, properties, body):
            self.got.append((method, properties, body.decode()))

        self.channel.basic_consume(queue, keep, auto_ack=auto_ack)

    def temporary_queue(self, exchange, *keys):
        queue = self.channel.queue_declare("", exclusive=True).method.queue
        for key in keys:
            self.channel.queue_bind(queue, exchange, key)
        self.consume(queue, auto_ack=True)
        return queue

    def bodies(self):
        return [body for _, _, body in self.got]

    def ready(self, queue):
        return self.channel.queue_declare(queue, passive=True).method.message_count


def until(condition, *peers):
    """Lets the peers receive until the condition holds; the alarm ends what never does."""
    while not condition():
        for peer in peers:
            peer.connection.process_data_events(time_limit=0.01)


def work_queues():
    sender, one, two = Peer(), Peer(prefetch=1), Peer(prefetch=1)
    for peer in (sender, one, two):
        peer.channel.queue_declare("task_queue", durable=True, arguments=QUORUM)
    one.consume("task_queue")
    two.consume("task_queue")
    persistent = pika.BasicProperties(delivery_mode=pika.DeliveryMode.Persistent)
    for body in "123":
        sender.channel.basic_publish("", "task_queue", body, persistent)
    until(lambda: one.got and two.got, one, two)
    assert sorted(one.bodies() + two.bodies()) == ["1", "2"], (one.bodies(), two.bodies())
    assert sender.ready("task_queue") == 1, "prefetch 1 leaves the third in the queue"
    # Only who acks gets more.
    two.channel.basic_ack(two.got[0][0].delivery_tag)
    until(lambda: len(two.got) == 2, one, two)
    assert two.bodies()[1] == "3" and len(one.got) == 1
    assert not two.got[1][0].redelivered and two.got[1][1].delivery_mode == 2
    # What a worker that goes away had not acked is another's, marked as seen before.
    one.connection.close()
    two.channel.basic_ack(two.got[1][0].delivery_tag)
    until(lambda: len(two.got) == 3, two)
    assert two.got[2][0].redelivered and two.bodies()[2] == one.bodies()[0]
    two.channel.basic_ack(two.got[2][0].delivery_tag)
    two.connection.close()
    assert sender.ready("task_queue") == 0


def publish_subscribe():
    sender, one, two = Peer(), Peer(), Peer()
    sender.channel.exchange_declare("logs", "fanout")
    sender.channel.basic_publish("logs", "", "nobody listens yet")
    queue = one.temporary_queue("logs", "")
    two.temporary_queue("logs", "any key")
    for body in ("first", "second"):
        sender.channel.basic_publish("logs", "", body)
    until(lambda: len(one.got) == len(two.got) == 2, one, two)
    assert one.bodies() == two.bodies() == ["first", "second"]
    one.connection.close()
    try:
        sender.channel.queue_declare(queue, passive=True)
        raise AssertionError("an exclusive queue outlived its connection")
    except ChannelClosedByBroker as closed:
        assert closed.reply_code == 404, closed


def routing():
    sender, errors, most = Peer(), Peer(), Peer()
    sender.channel.exchange_declare("direct_logs", "direct")
    errors.temporary_queue("direct_logs", "error")
    most.temporary_queue("direct_logs", "info", "warning", "error")
    for severity in ("debug", "info", "warning", "error"):
        sender.channel.basic_publish("direct_logs", severity, severity)
    until(lambda: errors.got and len(most.got) == 3, errors, most)
    assert errors.bodies() == ["error"] and most.bodies() == ["info", "warning", "error"]
    assert [method.routing_key for method, _, _ in most.got] == most.bodies()


def topics():
    patterns = {"all": ["#"], "kernel": ["kern.*"], "critical": ["*.critical"], "both": ["kern.*", "*.critical"], "deep": ["a.#.z"]}
    sender, peers = Peer(), {name: Peer() for name in patterns}
    sender.channel.exchange_declare("topic_logs", "topic")
    for name, keys in patterns.items():
        peers[name].temporary_queue("topic_logs", *keys)
    keys = ["kern.critical", "kern.info", "cron.critical", "kern.a.b", "a.z", "a.b.c.z", "kern"]
    for key in keys + ["kern.last", "last.critical", "a.last.z"]:
        sender.channel.basic_publish("topic_logs", key, key)
    lasts = {"all": "a.last.z", "kernel": "kern.last", "critical": "last.critical", "both": "last.critical", "deep": "a.last.z"}
    until(lambda: all(lasts[name] in peer.bodies() for name, peer in peers.items()), *peers.values())
    got = {name: [body for body in peer.bodies() if "last" not in body] for name, peer in peers.items()}
    assert got == {
        "all": keys,
        "kernel": ["kern.critical", "kern.info"],
        "critical": ["kern.critical", "cron.critical"],
        "both": ["kern.critical", "kern.info", "cron.critical"],
        "deep": ["a.z", "a.b.c.z"],
    }, got


def rpc():
    server, client = Peer(prefetch=1), Peer()
    server.channel.queue_declare("rpc_queue", durable=True, arguments=QUORUM)

    def answer(channel, method, properties, body):
        reply = pika.BasicProperties(correlation_id=properties.correlation_id)
        channel.basic_publish("", properties.reply_to, str(int(body) * 2), reply)
        channel.basic_ack(method.delivery_tag)

    server.channel.basic_consume("rpc_queue", answer)
    for reply_to in (client.channel.queue_declare("", exclusive=True).method.queue, "amq.rabbitmq.reply-to"):
        client.got.clear()
        client.consume(reply_to, auto_ack=True)
        for number in (7, 21):
            asking = pika.BasicProperties(reply_to=reply_to, correlation_id=f"call-{number}")
            client.channel.basic_publish("", "rpc_queue", str(number), asking)
        until(lambda: len(client.got) == 2, server, client)
        answers = [(properties.correlation_id, body) for _, properties, body in client.got]
        assert answers == [("call-7", "14"), ("call-21", "42")], answers


def confirms_one_by_one():
    sender = Peer()
    sender.channel.queue_declare("confirmed", durable=True, arguments=QUORUM)
    sender.channel.confirm_delivery()
    for number in range(20):
        sender.channel.basic_publish("", "confirmed", str(number), mandatory=True)
    assert sender.ready("confirmed") == 20
    try:
        sender.channel.basic_publish("", "nowhere", "lost", mandatory=True)
        raise AssertionError("a mandatory message that reached no queue was not returned")
    except UnroutableError as unroutable:
        assert unroutable.messages[0].method.reply_code == 312
    assert sender.ready("confirmed") == 20


def confirms_async():
    """A thousand publishes without waiting; every one is confirmed, some several at once."""
    outstanding, errors = set(), []

    def opened(connection):
        connection.channel(on_open_callback=lambda channel: channel.queue_declare("flooded", callback=lambda _: begin(channel)))

    def begin(channel):
        channel.confirm_delivery(confirmed, callback=lambda _: publish(channel))

    def publish(channel):
        for number in range(1, 1001):
            outstanding.add(number)
            channel.basic_publish("", "flooded", b"x" * number)

    def confirmed(frame):
        tag = frame.method.delivery_tag
        confirmed_now = {number for number in outstanding if number <= tag} if frame.method.multiple else {tag}
        if not isinstance(frame.method, pika.spec.Basic.Ack) or not confirmed_now <= outstanding:
            errors.append(frame)
        outstanding.difference_update(confirmed_now)
        if not outstanding:
            connection.close()

    def failed(connection, error):
        errors.append(error)
        connection.ioloop.stop()

    connection = pika.SelectConnection(
        pika.URLParameters(URL),
        on_open_callback=opened,
        on_open_error_callback=failed,
        on_close_callback=lambda connection, _: connection.ioloop.stop(),
    )
    connection.ioloop.start()
    assert not errors and not outstanding, (errors, len(outstanding))
    assert Peer().ready("flooded") == 1000


if __name__ == "__main__":
    signal.alarm(30)
    globals()[PATTERN]()
