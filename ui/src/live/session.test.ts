import { beforeEach, expect, test } from "vitest";
import type { ClientFrame } from "../api/types";
import type { FromWorker, RowsNotice } from "./messages";
import { Session } from "./session";

let sent: ClientFrame[];
let posted: FromWorker[];
let session: Session;
beforeEach(() => {
  sent = [];
  posted = [];
  session = new Session(
    (frame) => sent.push(frame),
    (message) => posted.push(message),
  );
});

const logs = (cursor: number, seqs: number[], skipped = 0, evicted = 0) =>
  session.onFrame({ kind: "rows", id: 1, cursor, rows: seqs.map((seq) => ({ seq })), skipped, evicted });
const openLogs = () =>
  session.onPage({
    do: "open-rows",
    sub: 1,
    spec: { channel: "logs", query: "level>=warn", backfill: 500 },
    options: { capacity: 100 },
  });
const notices = (): RowsNotice[] => posted.flatMap((m) => (m.is === "rows" ? m.notices : []));

test("what was opened before the socket is subscribed when it opens", () => {
  openLogs();
  expect(sent).toEqual([]);
  session.onOpen("e1");
  expect(sent).toEqual([{ op: "subscribe", id: 1, channel: "logs", query: "level>=warn", backfill: 500 }]);
});

test("rows are acknowledged, kept, and told once a frame", () => {
  session.onOpen("e1");
  openLogs();
  logs(3, [1, 2, 3]);
  logs(4, [4]);
  expect(sent.slice(1)).toEqual([
    { op: "ack", id: 1, cursor: 3 },
    { op: "ack", id: 1, cursor: 4 },
  ]);
  session.frame();
  session.frame();
  expect(notices()).toEqual([{ sub: 1, first: 0, next: 4, revision: 0, received: 4, tail: [], begun: true }]);
});

test("a list that follows gets its newest rows with the notice", () => {
  session.onOpen("e1");
  openLogs();
  session.onPage({ do: "tail", sub: 1, count: 2 });
  logs(3, [1, 2, 3]);
  session.frame();
  expect(
    notices()
      .at(-1)
      ?.tail.map((e) => e.row),
  ).toEqual([{ seq: 2 }, { seq: 3 }]);
});

test("skipped and evicted rows stand as one gap with exact counts", () => {
  session.onOpen("e1");
  openLogs();
  logs(1, [1]);
  logs(400, [400], 340, 58);
  session.onPage({ do: "window", sub: 1, from: 0, count: 9, token: 7 });
  const answer = posted.at(-1);
  expect(answer?.is === "window" && answer.entries.map((e) => e.gap ?? e.row)).toEqual([
    { seq: 1 },
    { skipped: 340, evicted: 58, restarted: false },
    { seq: 400 },
  ]);
});

test("what passed before the first rows is the past and no gap", () => {
  session.onOpen("e1");
  openLogs();
  logs(900, [900], 899);
  session.frame();
  expect(notices()[0]).toMatchObject({ first: 0, next: 1, received: 1 });
});

test("after a reconnect to the same process a stream resumes from its cursor", () => {
  session.onOpen("e1");
  openLogs();
  logs(9, [9]);
  session.onClose();
  sent.length = 0;
  session.onOpen("e1");
  expect(sent).toEqual([{ op: "subscribe", id: 1, channel: "logs", query: "level>=warn", cursor: 9 }]);
});

test("after a restart cursors are void and the list says so", () => {
  session.onOpen("e1");
  openLogs();
  logs(9, [9]);
  session.onClose();
  sent.length = 0;
  session.onOpen("e2");
  expect(sent[0]).toMatchObject({ op: "subscribe", backfill: 500 });
  session.onPage({ do: "window", sub: 1, from: 0, count: 9, token: 1 });
  const answer = posted.at(-1);
  expect(answer?.is === "window" && answer.entries.at(-1)?.gap?.restarted).toBe(true);
});

test("the first state is shown at once, later ones join until the beat", () => {
  session.onOpen("e1");
  session.onPage({ do: "open-state", sub: 2, spec: { channel: "services" } });
  const state = (cursor: number, full: boolean, set: Record<string, unknown>, gone: string[] = []) =>
    session.onFrame({ kind: "state", id: 2, cursor, full, set, gone });
  state(1, true, { a: 1 });
  expect(posted).toEqual([{ is: "beat", states: [{ sub: 2, full: true, set: { a: 1 }, gone: [] }] }]);
  posted.length = 0;
  state(2, false, { a: 2, b: 1 });
  state(3, false, { c: 1 }, ["b"]);
  state(4, false, { b: 5 }, ["a"]);
  expect(posted).toEqual([]);
  session.beat();
  expect(posted).toEqual([{ is: "beat", states: [{ sub: 2, full: false, set: { b: 5, c: 1 }, gone: ["a"] }] }]);
});

test("a hidden page is left alone and told everything when it returns", () => {
  session.onOpen("e1");
  openLogs();
  session.onPage({ do: "hidden", hidden: true });
  logs(2, [1, 2]);
  session.frame();
  expect(posted).toEqual([]);
  session.onPage({ do: "hidden", hidden: false });
  session.frame();
  expect(notices()[0]).toMatchObject({ next: 2, received: 2 });
});

test("closing a list unsubscribes it", () => {
  session.onOpen("e1");
  openLogs();
  session.onPage({ do: "close", sub: 1 });
  expect(sent.at(-1)).toEqual({ op: "unsubscribe", id: 1 });
  logs(5, [5]);
  expect(sent.at(-1)).toEqual({ op: "unsubscribe", id: 1 });
});

test("while a reader is away from the live end nothing is evicted and what passes is counted", () => {
  session.onOpen("e1");
  openLogs();
  session.onPage({ do: "tail", sub: 1, count: 10 });
  logs(
    90,
    Array.from({ length: 90 }, (_, i) => i),
  );
  session.onPage({ do: "tail", sub: 1, count: 0 });
  logs(
    190,
    Array.from({ length: 100 }, (_, i) => 90 + i),
  );
  logs(
    290,
    Array.from({ length: 100 }, (_, i) => 190 + i),
    5,
  );
  session.frame();
  expect(notices().at(-1)).toMatchObject({ first: 0, next: 101, received: 295 });
  session.onPage({ do: "window", sub: 1, from: 99, count: 9, token: 1 });
  const answer = posted.at(-1);
  expect(answer?.is === "window" && answer.entries.map((e) => e.gap ?? e.row)).toEqual([
    { seq: 99 },
    { skipped: 195, evicted: 0, restarted: false },
  ]);
  session.onPage({ do: "tail", sub: 1, count: 10 });
  logs(291, [290]);
  session.frame();
  expect(notices().at(-1)?.tail.at(-1)?.row).toEqual({ seq: 290 });
});
