// The keyboard map. Bindings are registered by whoever is on screen; the newest of equal keys wins. Single keys are off while a
// field has focus. A sequence is written with a space: "g o".

export interface Binding {
  /** `Ctrl K`, `Shift T`, `g o`, `/`, `Escape`, `ArrowDown` */
  keys: string;
  /** What it does, as the overlay and the palette say it. */
  does: string;
  run: (event: KeyboardEvent) => void;
  /** Also while a field has focus. */
  inFields?: boolean;
  /** Kept out of the overlay: a second name for the same thing. */
  silent?: boolean;
}

const SEQUENCE_MS = 1200;
const MODIFIERS = new Set(["Shift", "Control", "Alt", "Meta", "AltGraph", "CapsLock"]);

/** The name of a pressed key as bindings write it. Ctrl and ⌘ are one. */
export function nameOf(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "shiftKey">): string {
  const letter = event.key.length === 1 && event.key.toLowerCase() !== event.key.toUpperCase();
  const parts: string[] = [];
  if (event.ctrlKey || event.metaKey) parts.push("Ctrl");
  if (event.shiftKey && (letter || event.key.length > 1)) parts.push("Shift");
  parts.push(letter && parts.length > 0 ? event.key.toUpperCase() : event.key);
  return parts.join(" ");
}

export class KeyMap {
  private layers: Binding[][] = [];
  private prefix: string | null = null;
  private prefixAt = 0;

  add(bindings: Binding[]): () => void {
    this.layers.push(bindings);
    return () => {
      this.layers = this.layers.filter((layer) => layer !== bindings);
    };
  }

  /** Runs what is bound; true when something was, or when a sequence has begun. */
  press(event: KeyboardEvent, inField: boolean, now: number): boolean {
    if (MODIFIERS.has(event.key) || event.isComposing) return false;
    const name = nameOf(event);
    const prefix = this.prefix !== null && now - this.prefixAt < SEQUENCE_MS ? this.prefix : null;
    this.prefix = null;
    const full = prefix === null ? name : `${prefix} ${name}`;
    const binding = this.find(full, inField);
    if (binding) {
      binding.run(event);
      return true;
    }
    if (!inField && prefix === null && this.all().some((b) => b.keys.startsWith(`${name} `))) {
      this.prefix = name;
      this.prefixAt = now;
      return true;
    }
    return false;
  }

  all(): Binding[] {
    return this.layers.flat();
  }

  /** What the overlay lists: one line for each key, the newest binding of it. */
  listed(): Binding[] {
    const byKeys = new Map<string, Binding>();
    for (const binding of this.all()) if (!binding.silent) byKeys.set(binding.keys, binding);
    return [...byKeys.values()];
  }

  private find(name: string, inField: boolean): Binding | undefined {
    for (let i = this.layers.length - 1; i >= 0; i -= 1) {
      const found = this.layers[i]?.find((b) => b.keys === name && (!inField || b.inFields));
      if (found) return found;
    }
    return undefined;
  }
}

export const keyMap = new KeyMap();

export function isField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable) return true;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "button", "range"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** How a key looks on a cap. */
export function caps(keys: string): string {
  const mac = typeof navigator !== "undefined" && /Mac/.test(navigator.platform);
  return keys
    .replace("Ctrl", mac ? "⌘" : "Ctrl")
    .replace(/Shift /g, "⇧")
    .replace("Escape", "Esc")
    .replace("ArrowDown", "↓")
    .replace("ArrowUp", "↑");
}
