package main

import (
	"context"
	"log"
	"os"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	url, set := os.LookupEnv("AMQP_URL")
	if !set {
		url = "amqp://guest:guest@localhost"
	}
	channel := must(must(amqp.Dial(url)).Channel())
	queue := must(channel.QueueDeclare("greeter", false, false, false, false, nil))
	if err := channel.QueueBind(queue.Name, "greeter.#", "reactor.call", false, nil); err != nil {
		log.Fatal(err)
	}
	for call := range must(channel.Consume(queue.Name, "", true, false, false, false, nil)) {
		words := strings.Split(call.RoutingKey, ".")
		reply := amqp.Publishing{CorrelationId: call.CorrelationId, Body: []byte("Hello, " + words[len(words)-1])}
		if err := channel.PublishWithContext(context.Background(), "", call.ReplyTo, false, false, reply); err != nil {
			log.Fatal(err)
		}
	}
}
