// Dark and light are equals; the choice is kept locally, and without one the system decides.

import { Store } from "../live/store";

export type ThemeChoice = "dark" | "light" | "system";
const KEY = "reactor.theme";

function stored(): ThemeChoice {
  try {
    const value = localStorage.getItem(KEY);
    return value === "dark" || value === "light" ? value : "system";
  } catch {
    return "system";
  }
}
const systemLight = typeof matchMedia === "undefined" ? null : matchMedia("(prefers-color-scheme: light)");

export const themeChoice = new Store<ThemeChoice>(typeof localStorage === "undefined" ? "system" : stored());
/** The theme that is shown. Canvas parts read their inks again when it changes. */
export const theme = new Store<"dark" | "light">(shown(themeChoice.get()));

function shown(choice: ThemeChoice): "dark" | "light" {
  return choice === "system" ? (systemLight?.matches ? "light" : "dark") : choice;
}
function apply(): void {
  const now = shown(themeChoice.get());
  document.documentElement.dataset.theme = now;
  theme.set(now);
}
systemLight?.addEventListener("change", apply);

export function chooseTheme(choice: ThemeChoice): void {
  themeChoice.set(choice);
  try {
    if (choice === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, choice);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
  apply();
}
export const switchTheme = (): void => chooseTheme(theme.get() === "dark" ? "light" : "dark");
