import os, pika

connection = pika.BlockingConnection(pika.URLParameters(os.environ.get("AMQP_URL", "amqp://guest:guest@localhost")))
channel = connection.channel()
channel.queue_declare("greeter")
channel.queue_bind("greeter", "reactor.call", "greeter.#")

def greet(channel, call, properties, body):
    reply = f"Hello, {call.routing_key.split('.')[-1]}"
    channel.basic_publish("", properties.reply_to, reply, pika.BasicProperties(correlation_id=properties.correlation_id))

channel.basic_consume("greeter", greet, auto_ack=True)
channel.start_consuming()
