"""Answers /HelloWorld/Greeter/SayHello with `Hello World`."""
import os, pika

connection = pika.BlockingConnection(pika.URLParameters(os.environ.get("AMQP_URL", "amqp://guest:guest@localhost")))
channel = connection.channel()
channel.queue_declare("helloworld")
channel.queue_bind("helloworld", "reactor.call", "helloworld.greeter.sayhello")

def say_hello(channel, call, properties, body):
    reply = pika.BasicProperties(correlation_id=properties.correlation_id)
    channel.basic_publish("", properties.reply_to, "Hello World", reply)

channel.basic_consume("helloworld", say_hello, auto_ack=True)
channel.start_consuming()
