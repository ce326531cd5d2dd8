import { expect, test } from "vitest";
import { ansi, consoleSpans } from "./ansi";

const E = "\u001b";
const pairs = (line: string) => ansi(line).map((s) => [s.text, s.style]);

test("the eight colours, bold, dim and reset become classes", () => {
  expect(pairs(`${E}[31mred${E}[0m plain ${E}[1;33mwarn${E}[22m still${E}[39m`)).toEqual([
    ["red", "ansi-red"],
    [" plain ", ""],
    ["warn", "ansi-yellow ansi-bold"],
    [" still", "ansi-yellow"],
  ]);
  expect(pairs(`${E}[90mgrey${E}[m.`)).toEqual([
    ["grey", "ansi-grey"],
    [".", ""],
  ]);
});

test("256 and true colours take the basic colour of their hue", () => {
  expect(pairs(`${E}[38;5;196mx`)).toEqual([["x", "ansi-red"]]);
  expect(pairs(`${E}[38;2;80;200;90mx`)).toEqual([["x", "ansi-green"]]);
  expect(pairs(`${E}[38;5;244mx`)).toEqual([["x", "ansi-white"]]);
  expect(pairs(`${E}[38:2:200:190:40mx`)).toEqual([["x", "ansi-yellow"]]);
});

test("a background is not taken for a colour of the text", () => expect(pairs(`${E}[48;5;196mx`)).toEqual([["x", ""]]));

test("cursor movements, titles, links and control characters are dropped", () => {
  expect(pairs(`${E}[2K${E}[1Aup ${E}]0;title\u0007${E}]8;;http://x${E}\\link${E}]8;;${E}\\\u0007\u0000`)).toEqual([
    ["up link", ""],
  ]);
});

test("markup stays text", () =>
  expect(pairs("<img src=x onerror=alert(1)>")).toEqual([["<img src=x onerror=alert(1)>", ""]]));

test("a progress bar shows its last state", () => expect(pairs("10 %\r50 %\r100 %\r")).toEqual([["100 %", ""]]));

test("an unfinished escape at the end does no harm", () => expect(ansi(`a${E}[3`)[0]?.text).toBe("a[3"));

test("a plain line has its level word inked, a coloured one is left alone", () => {
  expect(consoleSpans("12:00 WARN disk").map((s) => s.style)).toEqual(["", "ansi-yellow", ""]);
  expect(consoleSpans("INFO started").map((s) => s.style)).toEqual(["ansi-grey", ""]);
  expect(consoleSpans("informed").map((s) => s.style)).toEqual([""]);
  expect(consoleSpans(`${E}[32mINFO${E}[0m x`).map((s) => s.style)).toEqual(["ansi-green", ""]);
});
