import { expect, test } from "vitest";
import { paint } from "./code";

const inks = (text: string, language: string) =>
  paint(text, language, "greeter")
    .filter((p) => p.ink !== "plain")
    .map((p) => [p.text, p.ink]);

test("the name to change glows, in strings too, with its binding key", () => {
  expect(inks('ch.queue_bind(q, "reactor.call", "greeter.#")', "Python")).toEqual([["greeter.#", "change"]]);
  expect(inks('queue_declare("greeter")', "Python")).toEqual([["greeter", "change"]]);
});

test("comments step back from their sign to the end of the line", () => {
  expect(inks("import pika  # greeter", "Python")).toEqual([
    ["import", "keyword"],
    ["# greeter", "comment"],
  ]);
  expect(inks('amqp.Dial("amqp://localhost") // dial', "Go")).toEqual([["// dial", "comment"]]);
});

test("a sign inside quotes is no comment", () => expect(inks('x = "a # b"', "Python")).toEqual([]));

test("nothing of the text is lost", () => {
  const text = 'using RabbitMQ.Client;\n\nvar f = new ConnectionFactory { Uri = new("amqp://x") }; // y\n';
  expect(
    paint(text, ".NET", "greeter")
      .map((p) => p.text)
      .join(""),
  ).toBe(text);
});
