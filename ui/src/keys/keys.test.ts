import { expect, test } from "vitest";
import { KeyMap, nameOf } from "./keys";

const event = (key: string, more: Partial<KeyboardEvent> = {}) =>
  ({ key, ctrlKey: false, metaKey: false, shiftKey: false, isComposing: false, ...more }) as KeyboardEvent;

test("keys are named as bindings write them", () => {
  expect(nameOf(event("k", { ctrlKey: true }))).toBe("Ctrl K");
  expect(nameOf(event("k", { metaKey: true }))).toBe("Ctrl K");
  expect(nameOf(event("T", { shiftKey: true }))).toBe("Shift T");
  expect(nameOf(event("?", { shiftKey: true }))).toBe("?");
  expect(nameOf(event("Escape"))).toBe("Escape");
  expect(nameOf(event("ArrowDown", { shiftKey: true }))).toBe("Shift ArrowDown");
});

test("a sequence runs when both keys come in time and not otherwise", () => {
  const map = new KeyMap();
  let ran = 0;
  map.add([{ keys: "g o", does: "Overview", run: () => (ran += 1) }]);
  expect(map.press(event("g"), false, 0)).toBe(true);
  expect(map.press(event("o"), false, 500)).toBe(true);
  map.press(event("g"), false, 1000);
  expect(map.press(event("o"), false, 5000)).toBe(false);
  expect(ran).toBe(1);
});

test("single keys are off in fields, unless said", () => {
  const map = new KeyMap();
  const ran: string[] = [];
  map.add([
    { keys: "p", does: "Pause", run: () => ran.push("p") },
    { keys: "Ctrl K", does: "Palette", run: () => ran.push("k"), inFields: true },
  ]);
  expect(map.press(event("p"), true, 0)).toBe(false);
  expect(map.press(event("k", { ctrlKey: true }), true, 0)).toBe(true);
  expect(ran).toEqual(["k"]);
});

test("the newest binding of a key wins until it goes", () => {
  const map = new KeyMap();
  const ran: string[] = [];
  map.add([{ keys: "Escape", does: "Leave", run: () => ran.push("page") }]);
  const remove = map.add([{ keys: "Escape", does: "Close", run: () => ran.push("panel") }]);
  map.press(event("Escape"), false, 0);
  remove();
  map.press(event("Escape"), false, 0);
  expect(ran).toEqual(["panel", "page"]);
  expect(map.listed()).toHaveLength(1);
});
