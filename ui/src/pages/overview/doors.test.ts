import { expect, test } from "vitest";
import type { Door } from "../../api/types";
import { doorsByName, environment, portOf, publicUrl } from "./doors";

const door = (name: string, address: string | null): Door => ({
  name,
  speaks: "",
  address,
  state: address ? "listening" : "off",
  accepted: 0,
  last_us: null,
});

test("the public address leaves out port 80 and falls back to the ingress", () => {
  expect(publicUrl([door("http", "127.0.0.1:80, [::1]:80")])).toBe("http://localhost");
  expect(publicUrl([door("http", null), door("ingress", "127.0.0.1:16000")])).toBe("http://localhost:16000");
});

test("with only the bus reachable the variables name the bus", () => {
  expect(environment([door("bus", "[::1]:15010"), door("amqp", null)])).toEqual([
    ["AMQP_URL", "amqp://localhost:15010"],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:15010"],
  ]);
});

test("doors that are off stand last and have no port", () => {
  const doors = doorsByName(
    new Map([
      ["amqps", door("amqps", null)],
      ["bus", door("bus", "127.0.0.1:15010")],
      ["http", door("http", "127.0.0.1:80")],
    ]),
  );
  expect(doors.map((d) => d.name)).toEqual(["http", "bus", "amqps"]);
  expect(portOf(doors, "amqps")).toBeNull();
});
