"""What the image's tests do as a client of the bus: `client.py VERB URL`.

round    publish with a confirm to a queue of its own and get the message back
serve    answer calls to `greeter`, as in the README; says `serving`, runs until killed
refused  exit 0 if the login is refused, and print what the server said
"""

import sys

import pika


def open_channel(url):
    parameters = pika.URLParameters(url)
    parameters.socket_timeout = parameters.blocked_connection_timeout = 10
    connection = pika.BlockingConnection(parameters)
    return connection, connection.channel()


def round_trip(url):
    connection, channel = open_channel(url)
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"there and back", mandatory=True)
    _, _, body = channel.basic_get(queue, auto_ack=True)
    assert body == b"there and back", body
    connection.close()


def serve(url):
    _, channel = open_channel(url)
    channel.queue_declare("greeter")
    channel.queue_bind("greeter", "reactor.call", "greeter.#")

    def greet(_, call, properties, body):
        reply = f"Hello, {call.routing_key.split('.')[-1]}"
        channel.basic_publish("", properties.reply_to, reply, pika.BasicProperties(correlation_id=properties.correlation_id))

    channel.basic_consume("greeter", greet, auto_ack=True)
    print("serving", flush=True)
    channel.start_consuming()


def refused(url):
    try:
        open_channel(url)
    except (pika.exceptions.ProbableAuthenticationError, pika.exceptions.AuthenticationError) as error:
        print(error)
        return
    except pika.exceptions.ConnectionClosedByBroker as error:
        assert error.reply_code == 403, error
        print(error.reply_text)
        return
    raise SystemExit("the login was accepted")


if __name__ == "__main__":
    {"round": round_trip, "serve": serve, "refused": refused}[sys.argv[1]](sys.argv[2])
