// A value and its listeners: the smallest thing that useSyncExternalStore and canvas parts can share.

export class Store<T> {
  private listeners = new Set<() => void>();

  constructor(private value: T) {}

  readonly get = (): T => this.value;

  set(value: T): void {
    if (Object.is(value, this.value)) return;
    this.value = value;
    for (const listener of [...this.listeners]) listener();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  get used(): boolean {
    return this.listeners.size > 0;
  }
}
