// Contrast, computed over the tokens themselves, in both themes (ui.md §12).

import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

type Rgb = [number, number, number];
interface Colour {
  rgb: Rgb;
  alpha: number;
}

const css = readFileSync(new URL("./tokens.css", import.meta.url), "utf8").replace(/\/\*[\s\S]*?\*\//g, "");

function block(selector: string): Map<string, string> {
  const at = css.indexOf(`${selector} {`);
  const body = css.slice(css.indexOf("{", at) + 1, css.indexOf("}", at));
  return new Map([...body.matchAll(/(--[\w-]+):\s*([^;]+);/g)].map((m) => [m[1] as string, (m[2] as string).trim()]));
}
function colour(value: string): Colour {
  const hex = /^#([0-9a-f]{6})$/.exec(value)?.[1];
  if (hex) return { rgb: [0, 2, 4].map((i) => Number.parseInt(hex.slice(i, i + 2), 16)) as Rgb, alpha: 1 };
  const m = /^rgb\((\d+) (\d+) (\d+) \/ ([\d.]+)\)$/.exec(value);
  if (!m) throw new Error(`no colour: ${value}`);
  return { rgb: [Number(m[1]), Number(m[2]), Number(m[3])], alpha: Number(m[4]) };
}
const over = (top: Colour, ground: Rgb): Rgb =>
  top.rgb.map((c, i) => c * top.alpha + (ground[i] as number) * (1 - top.alpha)) as Rgb;
function luminance(rgb: Rgb): number {
  const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4)) as Rgb;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function contrast(a: Rgb, b: Rgb): number {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

describe.each([
  ["dark", ':root, [data-theme="dark"]'],
  ["light", '[data-theme="light"]'],
])("%s", (_name, selector) => {
  const tokens = block(selector);
  const get = (token: string): Colour => colour(tokens.get(token) ?? "");
  const ground = (token: string) => get(token).rgb;
  const against = (token: string, on: Rgb) => contrast(over(get(token), on), on);
  const grounds = ["--bg-0", "--bg-1", "--bg-2"].map(ground);

  test.each(["--text-1", "--text-2", "--text-3"])("%s is readable on every ground", (token) => {
    for (const on of grounds) expect(against(token, on)).toBeGreaterThanOrEqual(4.5);
  });
  test.each(["--text-1", "--text-2"])("%s is readable on a selected row of the palette", (token) => {
    expect(against(token, over(get("--row-selected"), ground("--bg-3")))).toBeGreaterThanOrEqual(4.5);
  });
  test.each(["--text-1", "--text-2", "--text-3", "--accent", "--warn", "--err", "--ok"])(
    "%s is readable on a selected row",
    (token) => {
      expect(against(token, over(get("--row-selected"), ground("--bg-0")))).toBeGreaterThanOrEqual(4.5);
    },
  );
  test.each([
    ["--ok", "--ok-soft"],
    ["--warn", "--warn-soft"],
    ["--err", "--err-soft"],
    ["--accent", "--accent-soft"],
  ])("%s is readable on its soft fill", (token, soft) => {
    for (const on of [ground("--bg-0"), ground("--bg-1")])
      expect(against(token, over(get(soft), on))).toBeGreaterThanOrEqual(4.5);
  });
  test.each(["--line-3", "--chart-1", "--chart-2", "--ok", "--warn-fill", "--err-fill", "--bar-error", "--bar-warn"])(
    "%s can be told from its ground",
    (token) => {
      expect(against(token, ground("--bg-0"))).toBeGreaterThanOrEqual(3);
    },
  );
  test("every service colour can be told from the ground", () => {
    for (let slot = 1; slot <= 12; slot += 1)
      expect(against(`--svc-${slot}`, ground("--bg-0"))).toBeGreaterThanOrEqual(3);
  });
});

test("no file but tokens.css names a raw colour", () => {
  const root = new URL("../", import.meta.url);
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter(
    (f) => /\.(css|tsx?)$/.test(f) && !/tokens\.|\.test\./.test(f),
  );
  expect(files.length).toBeGreaterThan(50);
  const raw = files.filter((f) =>
    /["'\s:(]#(?:[0-9a-f]{3}|[0-9a-f]{6})\b|\brgba?\(/i.test(readFileSync(new URL(f, root), "utf8")),
  );
  expect(raw).toEqual([]);
});
