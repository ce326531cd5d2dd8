// Owns the live socket: reconnects, decodes, keeps the rings, and wakes the page once a second for state and once a frame for
// rows. It imports no framework.

import type { ClientFrame, ServerFrame } from "../api/types";
import type { FromWorker, Link, ToWorker } from "./messages";
import { Session } from "./session";

interface WorkerScope {
  postMessage(message: FromWorker): void;
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
  requestAnimationFrame?: (callback: () => void) => number;
}
const scope = self as unknown as WorkerScope;

const RETRY_MS = [250, 500, 1000, 2000, 3000];
const BEAT_MS = 1000;
const PING_MS = 5000;
const FRAME_MS = 50;
/** No frame, not even a pong, for this long: the connection is dead although nothing said so (sleep, lost network). */
const SILENCE_MS = 15_000;

let socket: WebSocket | null = null;
let url = "";
let attempts = 0;
let heard = 0;
const link: Link = {
  state: "connecting",
  since_ms: Date.now(),
  epoch: null,
  version: null,
  rtt_ms: null,
  offset_us: 0,
};

const post = (message: FromWorker) => scope.postMessage(message);
const send = (frame: ClientFrame) => {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(frame));
};
const session = new Session(send, post);

function setLink(change: Partial<Link>): void {
  if (change.state && change.state !== link.state) link.since_ms = Date.now();
  Object.assign(link, change);
  post({ is: "link", link: { ...link } });
}

function connect(): void {
  const current = new WebSocket(url);
  socket = current;
  heard = Date.now();
  current.onmessage = (event) => {
    if (socket !== current || typeof event.data !== "string") return;
    heard = Date.now();
    onFrame(JSON.parse(event.data) as ServerFrame);
  };
  current.onclose = () => {
    if (socket === current) lost();
  };
}

function onFrame(frame: ServerFrame): void {
  if (frame.kind === "hello") {
    attempts = 0;
    setLink({ state: "open", epoch: frame.epoch, version: frame.version, offset_us: frame.now_us - Date.now() * 1000 });
    session.onOpen(frame.epoch);
    send({ op: "ping", at: Date.now() });
  } else if (frame.kind === "pong") {
    setLink({ rtt_ms: Math.max(0, Date.now() - frame.at) });
  } else {
    session.onFrame(frame);
  }
}

function lost(): void {
  socket = null;
  session.onClose();
  setLink({ state: link.epoch === null ? "connecting" : "lost", rtt_ms: null });
  const wait = RETRY_MS[Math.min(attempts, RETRY_MS.length - 1)] ?? 3000;
  attempts += 1;
  setTimeout(connect, wait);
}

scope.onmessage = ({ data }) => {
  if (data.do === "connect") {
    url = data.url;
    connect();
    return;
  }
  session.onPage(data);
  if (data.do === "tail" || data.do === "older") session.frame();
  if (data.do === "hidden" && !data.hidden) {
    session.beat();
    session.frame();
  }
};

setInterval(() => session.beat(), BEAT_MS);
setInterval(() => {
  if (Date.now() - heard > SILENCE_MS && socket) {
    const dead = socket;
    lost();
    dead.close();
    return;
  }
  send({ op: "ping", at: Date.now() });
}, PING_MS);
setInterval(() => {
  if (scope.requestAnimationFrame) scope.requestAnimationFrame(() => session.frame());
  else session.frame();
}, FRAME_MS);
