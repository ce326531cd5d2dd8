// Token colours for canvas parts: read once from the style sheet, again when the theme changes.

import { theme } from "../frame/theme";

const known = new Map<string, string>();
theme.subscribe(() => known.clear());

/** The value of a token such as `--chart-1`. */
export function ink(token: string): string {
  let value = known.get(token);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(token).trim();
    known.set(token, value);
  }
  return value;
}
export const slotInk = (slot: number | null): string => ink(slot ? `--svc-${((slot - 1) % 12) + 1}` : "--chart-2");

const fonts = { ui: "--font-ui", mono: "--font-mono" } as const;
export const font = (size: number, family: keyof typeof fonts = "ui", weight = 400): string =>
  `${weight} ${size}px ${ink(fonts[family])}`;
