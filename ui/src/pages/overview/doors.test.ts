import { expect, test } from "vitest";
import type { Door } from "../../api/types";
import { doorsByName, portOf, publicUrl, runCommand, served } from "./doors";

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

test("a command says the address when it is not the standard one", () => {
  const at = (value: string) => runCommand("python3 greeter.py", [{ name: "AMQP_URL", value }]);
  expect(at("amqp://guest:guest@localhost:5672")).toBe("python3 greeter.py");
  expect(at("amqp://guest:guest@localhost:15672")).toBe(
    "AMQP_URL=amqp://guest:guest@localhost:15672 python3 greeter.py",
  );
  expect(runCommand("python3 greeter.py", [])).toBe("python3 greeter.py");
});

test("a door that this version does not have is no fault, one that could not be opened is", () => {
  expect(served({ ...door("redis", null), state: "not served by this version" })).toBe(false);
  expect(served(door("amqps", null))).toBe(false);
  expect(served({ ...door("http", null), state: "not permitted" })).toBe(true);
});
