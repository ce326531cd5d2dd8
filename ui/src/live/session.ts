// The live feed without its socket: subscriptions, cursors, acknowledgements, rings. Takes server frames and the page's wishes,
// returns frames to send and messages for the page, so that it can be tested without a worker.

import type { ClientFrame, ServerFrame } from "../api/types";
import type { FromWorker, RowOptions, RowsNotice, Spec, StateBeat, ToWorker } from "./messages";
import { Ring } from "./ring";

interface StateSub {
  kind: "state";
  spec: Spec;
  pending: StateBeat | null;
  /** The first full state is shown at once, later ones on the beat. */
  shown: boolean;
}
interface RowsSub {
  kind: "rows";
  spec: Spec;
  options: RowOptions;
  ring: Ring<unknown>;
  cursor: number | null;
  received: number;
  revision: number;
  tail: number;
  /** Somebody reads away from the live end: what is kept stays, what has no room is counted. */
  held: boolean;
  begun: boolean;
  dirty: boolean;
}
type Sub = StateSub | RowsSub;

export class Session {
  private subs = new Map<number, Sub>();
  private epoch: string | null = null;
  private open = false;
  private hidden = false;

  constructor(
    private readonly send: (frame: ClientFrame) => void,
    private readonly post: (message: FromWorker) => void,
  ) {}

  onPage(message: ToWorker): void {
    switch (message.do) {
      case "open-state":
        this.subs.set(message.sub, { kind: "state", spec: message.spec, pending: null, shown: false });
        if (this.open) this.subscribe(message.sub);
        return;
      case "open-rows":
        this.subs.set(message.sub, this.newRows(message.spec, message.options));
        if (this.open) this.subscribe(message.sub);
        return;
      case "close":
        if (this.subs.delete(message.sub) && this.open) this.send({ op: "unsubscribe", id: message.sub });
        return;
      case "window":
        this.onWindow(message.sub, message.from, message.count, message.token);
        return;
      case "tail": {
        const sub = this.rows(message.sub);
        if (!sub) return;
        sub.tail = message.count;
        sub.held = message.count === 0;
        sub.dirty = true;
        return;
      }
      case "older": {
        const sub = this.rows(message.sub);
        if (!sub) return;
        sub.ring.prepend(message.rows);
        sub.revision += 1;
        sub.dirty = true;
        return;
      }
      case "hidden":
        this.hidden = message.hidden;
        return;
      case "connect":
        return;
    }
  }

  /** `hello` came: everything is subscribed anew, streams from their cursors when it is the same process. */
  onOpen(epoch: string): void {
    const restarted = this.epoch !== null && this.epoch !== epoch;
    this.epoch = epoch;
    this.open = true;
    for (const [id, sub] of this.subs) {
      if (sub.kind === "rows" && restarted) {
        sub.cursor = null;
        if (sub.ring.length > 0) sub.ring.appendGap({ skipped: 0, evicted: 0, restarted: true });
        sub.dirty = true;
      }
      this.subscribe(id);
    }
  }
  onClose(): void {
    this.open = false;
  }

  onFrame(frame: ServerFrame): void {
    if (frame.kind === "state") this.onState(frame);
    else if (frame.kind === "rows") this.onRows(frame);
    else if (frame.kind === "refused") this.post({ is: "refused", sub: frame.id, problem: frame.problem });
  }

  /** Once a second: what changed since the last beat. */
  beat(): void {
    if (this.hidden) return;
    const states: StateBeat[] = [];
    for (const sub of this.subs.values()) {
      if (sub.kind !== "state" || !sub.pending) continue;
      states.push(sub.pending);
      sub.pending = null;
    }
    if (states.length > 0) this.post({ is: "beat", states });
  }

  /** Once a frame at most: which rings grew. Rows travel only when a list follows its live end or asks for a window. */
  frame(): void {
    if (this.hidden) return;
    const notices: RowsNotice[] = [];
    for (const [id, sub] of this.subs) {
      if (sub.kind !== "rows" || !sub.dirty) continue;
      sub.dirty = false;
      notices.push(this.notice(id, sub));
    }
    if (notices.length > 0) this.post({ is: "rows", notices });
  }

  private newRows(spec: Spec, options: RowOptions): RowsSub {
    const { key } = options;
    const keyOf = key ? (row: unknown) => (row as Record<string, unknown>)[key] : null;
    const ring = new Ring<unknown>(options.capacity, keyOf);
    return {
      kind: "rows",
      spec,
      options,
      ring,
      cursor: null,
      received: 0,
      revision: 0,
      tail: 0,
      held: false,
      begun: false,
      dirty: false,
    };
  }

  private rows(id: number): RowsSub | null {
    const sub = this.subs.get(id);
    return sub?.kind === "rows" ? sub : null;
  }

  private subscribe(id: number): void {
    const sub = this.subs.get(id);
    if (!sub) return;
    const { channel, query, service, instance, space, backfill } = sub.spec;
    const frame: Extract<ClientFrame, { op: "subscribe" }> = { op: "subscribe", id, channel };
    if (query) frame.query = query;
    if (service) frame.service = service;
    if (instance) frame.instance = instance;
    if (space) frame.space = space;
    if (sub.kind === "rows") {
      if (sub.cursor !== null) frame.cursor = sub.cursor;
      else if (backfill) frame.backfill = backfill;
    }
    this.send(frame);
  }

  private onState(frame: Extract<ServerFrame, { kind: "state" }>): void {
    const sub = this.subs.get(frame.id);
    if (sub?.kind !== "state") return;
    this.send({ op: "ack", id: frame.id, cursor: frame.cursor });
    if (frame.full || !sub.pending) {
      sub.pending = { sub: frame.id, full: frame.full, set: { ...frame.set }, gone: [...frame.gone] };
    } else {
      for (const key of frame.gone) delete sub.pending.set[key];
      Object.assign(sub.pending.set, frame.set);
      sub.pending.gone = sub.pending.gone.filter((key) => !(key in frame.set)).concat(frame.gone);
    }
    if (sub.shown) return;
    sub.shown = true;
    this.post({ is: "beat", states: [sub.pending] });
    sub.pending = null;
  }

  private onRows(frame: Extract<ServerFrame, { kind: "rows" }>): void {
    const sub = this.rows(frame.id);
    if (!sub) return;
    const missing = frame.skipped + frame.evicted;
    // What passed before the first rows of a fresh subscription is the past, not a gap.
    if (missing > 0 && sub.begun)
      sub.ring.appendGap({ skipped: frame.skipped, evicted: frame.evicted, restarted: false });
    const { fresh, passed } = take(sub, frame.rows);
    if (fresh + passed < frame.rows.length) sub.revision += 1;
    sub.received += fresh + passed + (sub.begun ? missing : 0);
    sub.begun = true;
    sub.cursor = frame.cursor;
    sub.dirty = true;
    this.send({ op: "ack", id: frame.id, cursor: frame.cursor });
  }

  private onWindow(id: number, from: number, count: number, token: number): void {
    const sub = this.rows(id);
    if (!sub) return;
    this.post({ is: "window", sub: id, token, revision: sub.revision, entries: sub.ring.window(from, count) });
  }

  private notice(id: number, sub: RowsSub): RowsNotice {
    const { ring, revision, received, begun } = sub;
    const tail = sub.tail > 0 ? ring.window(ring.next - sub.tail, sub.tail) : [];
    return { sub: id, first: ring.first, next: ring.next, revision, received, tail, begun };
  }
}

/** A reader's rows are not evicted: with the ring full, what comes passes by as a gap until the live end is followed again. */
function take(sub: RowsSub, rows: readonly unknown[]): { fresh: number; passed: number } {
  const room = sub.held ? Math.max(0, sub.options.capacity - sub.ring.length) : rows.length;
  const fresh = sub.ring.append(rows.slice(0, room), sub.held);
  const late = sub.ring.replace(rows.slice(room));
  const passed = Math.max(0, rows.length - room - late);
  if (passed > 0) sub.ring.appendGap({ skipped: passed, evicted: 0, restarted: false });
  return { fresh, passed };
}
