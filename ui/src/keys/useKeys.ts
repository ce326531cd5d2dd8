import { useEffect, useRef } from "react";
import { type Binding, isField, keyMap } from "./keys";

/** Registers keys while the component stands. The newest closures run; the list itself is taken once per change of its keys. */
export function useKeys(bindings: Binding[]): void {
  const latest = useRef(bindings);
  latest.current = bindings;
  const signature = bindings.map((b) => `${b.keys}|${b.does}`).join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: bindings are compared by their keys and words
  useEffect(() => {
    const stable = latest.current.map((binding, i) => ({
      ...binding,
      run: (event: KeyboardEvent) => (latest.current[i] ?? binding).run(event),
    }));
    return keyMap.add(stable);
  }, [signature]);
}

/** One listener for the whole page. */
export function useKeyListener(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.altKey) return;
      if (keyMap.press(event, isField(event.target), performance.now())) event.preventDefault();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
}
