// The page's side of the live feed: shares one worker among all views. State channels become maps that change once a second;
// row streams become windows into the worker's rings. No framework here: parts on canvas use it as they are.

import type { Micros, Problem } from "../api/types";
import type { FromWorker, Link, RowOptions, RowsNotice, Spec, StateBeat, ToWorker } from "./messages";
import { paused } from "./pause";
import type { Entry } from "./ring";
import { Store } from "./store";

/** A view that comes back within this time finds its data still there. */
const LINGER_MS = 10_000;
const LINK: Link = {
  state: "connecting",
  since_ms: Date.now(),
  epoch: null,
  version: null,
  rtt_ms: null,
  offset_us: 0,
};

export interface StateView<T> {
  values: ReadonlyMap<string, T>;
  /** The first full state has come. */
  ready: boolean;
  problem: Problem | null;
}
export interface RowsView {
  first: number;
  next: number;
  revision: number;
  received: number;
  begun: boolean;
  problem: Problem | null;
}

abstract class Subscription<V> {
  readonly view: Store<V>;
  private users = 0;
  private linger: ReturnType<typeof setTimeout> | null = null;

  constructor(
    readonly id: number,
    initial: V,
    private readonly forget: () => void,
  ) {
    this.view = new Store(initial);
  }
  readonly get = (): V => this.view.get();
  readonly subscribe = (listener: () => void): (() => void) => {
    this.users += 1;
    if (this.linger) clearTimeout(this.linger);
    const stop = this.view.subscribe(listener);
    return () => {
      stop();
      this.users -= 1;
      if (this.users === 0) this.linger = setTimeout(this.forget, LINGER_MS);
    };
  };
  abstract refuse(problem: Problem): void;
}

export class StateFeed<T> extends Subscription<StateView<T>> {
  /** What came while paused, to be shown on resume. */
  private held: StateBeat[] = [];

  take(beat: StateBeat): void {
    if (paused.freezesState() && this.get().ready) {
      if (beat.full) this.held = [];
      this.held.push(beat);
      return;
    }
    this.apply(beat);
  }
  release(): void {
    const held = this.held;
    this.held = [];
    for (const beat of held) this.apply(beat);
  }
  refuse(problem: Problem): void {
    this.view.set({ ...this.get(), problem });
  }
  private apply(beat: StateBeat): void {
    const values = new Map<string, T>(beat.full ? [] : this.get().values);
    for (const key of beat.gone) values.delete(key);
    for (const key in beat.set) values.set(key, beat.set[key] as T);
    this.view.set({ values, ready: true, problem: null });
  }
}

export class RowsFeed<T> extends Subscription<RowsView> {
  private cache = new Map<number, Entry<T>>();
  private token = 0;
  private followed = 0;
  private asked: { from: number; to: number } | null = null;

  constructor(
    id: number,
    forget: () => void,
    private readonly tell: (message: ToWorker) => void,
  ) {
    super(id, { first: 0, next: 0, revision: 0, received: 0, begun: false, problem: null }, forget);
  }

  /** The entry at a position if it is here already; ask for it with `want`. */
  peek(position: number): Entry<T> | undefined {
    return this.cache.get(position);
  }
  /** Makes sure the entries of `[from, to)` come; cheap when they are here. Listeners hear of their arrival. */
  want(from: number, to: number): void {
    const { first, next } = this.get();
    const low = Math.max(from, first);
    const high = Math.min(to, next);
    let missing = false;
    for (let i = low; i < high && !missing; i += 1) missing = !this.cache.has(i);
    if (!missing || (this.asked && this.asked.from <= low && this.asked.to >= high)) return;
    this.asked = { from: low, to: high };
    this.token += 1;
    this.tell({ do: "window", sub: this.id, from: low, count: high - low, token: this.token });
  }
  /** Follow the live end: the newest `count` entries come with every notice. Zero stops. */
  follow(count: number): void {
    // Said again it would only wake the worker, whose notice would say it again.
    if (count === this.followed) return;
    this.followed = count;
    this.tell({ do: "tail", sub: this.id, count });
  }
  /** Rows loaded from the past, oldest first, to stand before the first. */
  prepend(rows: T[]): void {
    this.tell({ do: "older", sub: this.id, rows });
  }
  onNotice(notice: RowsNotice): void {
    if (notice.revision !== this.get().revision) this.forgetCached();
    this.remember(notice.tail as Entry<T>[], notice.first);
    const { first, next, revision, received, begun } = notice;
    this.view.set({ first, next, revision, received, begun, problem: null });
  }
  onWindow(token: number, entries: Entry<T>[]): void {
    if (token === this.token) this.asked = null;
    this.remember(entries, this.get().first);
    this.view.set({ ...this.get() });
  }
  refuse(problem: Problem): void {
    this.view.set({ ...this.get(), problem, begun: true });
  }
  private remember(entries: Entry<T>[], first: number): void {
    if (this.cache.size > 4000) for (const key of this.cache.keys()) if (this.cache.size > 2000) this.cache.delete(key);
    for (const entry of entries) if (entry.position >= first) this.cache.set(entry.position, entry);
  }
  private forgetCached(): void {
    this.cache.clear();
    this.asked = null;
  }
}

export class Feed {
  readonly link = new Store<Link>(LINK);
  private subs = new Map<number, StateFeed<unknown> | RowsFeed<unknown>>();
  private byKey = new Map<string, number>();
  private ids = 0;
  private worker: Worker | null = null;
  private waiting: ToWorker[] = [];

  start(worker: Worker, url: string): void {
    this.worker = worker;
    worker.onmessage = (event: MessageEvent<FromWorker>) => this.onMessage(event.data);
    this.tell({ do: "connect", url });
    for (const message of this.waiting.splice(0)) this.tell(message);
    const visibility = () => this.tell({ do: "hidden", hidden: document.hidden });
    document.addEventListener("visibilitychange", visibility);
    visibility();
    paused.subscribe(() => {
      if (!paused.freezesState()) for (const sub of this.subs.values()) if (sub instanceof StateFeed) sub.release();
    });
  }

  /** The last-value map of a state channel; the same object for everyone who asks for the same. */
  state<T>(spec: Spec): StateFeed<T> {
    const key = `state ${JSON.stringify(spec)}`;
    const known = this.subs.get(this.byKey.get(key) ?? -1);
    if (known instanceof StateFeed) return known as StateFeed<T>;
    const id = this.nextId(key);
    const sub = new StateFeed<T>(id, { values: new Map(), ready: false, problem: null }, () => this.forget(key, id));
    this.subs.set(id, sub as StateFeed<unknown>);
    this.tell({ do: "open-state", sub: id, spec });
    return sub;
  }

  /** A stream's ring in the worker; the same object for everyone who asks for the same. */
  rows<T>(spec: Spec, options: RowOptions = { capacity: 20_000 }): RowsFeed<T> {
    const key = `rows ${JSON.stringify([spec, options])}`;
    const known = this.subs.get(this.byKey.get(key) ?? -1);
    if (known instanceof RowsFeed) return known as RowsFeed<T>;
    const id = this.nextId(key);
    const sub = new RowsFeed<T>(
      id,
      () => this.forget(key, id),
      (message) => this.tell(message),
    );
    this.subs.set(id, sub as unknown as RowsFeed<unknown>);
    this.tell({ do: "open-rows", sub: id, spec, options });
    return sub;
  }

  private nextId(key: string): number {
    this.ids += 1;
    this.byKey.set(key, this.ids);
    return this.ids;
  }
  private forget(key: string, id: number): void {
    if (this.byKey.get(key) === id) this.byKey.delete(key);
    if (this.subs.delete(id)) this.tell({ do: "close", sub: id });
  }
  private tell(message: ToWorker): void {
    if (this.worker) this.worker.postMessage(message);
    else this.waiting.push(message);
  }
  private onMessage(message: FromWorker): void {
    switch (message.is) {
      case "link":
        this.link.set(message.link);
        return;
      case "beat":
        for (const beat of message.states) {
          const sub = this.subs.get(beat.sub);
          if (sub instanceof StateFeed) sub.take(beat);
        }
        return;
      case "rows":
        for (const notice of message.notices) {
          const sub = this.subs.get(notice.sub);
          if (sub instanceof RowsFeed) sub.onNotice(notice);
        }
        return;
      case "window": {
        const sub = this.subs.get(message.sub);
        if (sub instanceof RowsFeed) sub.onWindow(message.token, message.entries);
        return;
      }
      case "refused":
        this.subs.get(message.sub)?.refuse(message.problem);
        return;
    }
  }
}

export const feed = new Feed();

/** The server's clock: the one all times on the page are compared with. */
export const serverNowUs = (): Micros => Date.now() * 1000 + feed.link.get().offset_us;
