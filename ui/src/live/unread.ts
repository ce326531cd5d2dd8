// Errors that were not read yet: what the server counted minus what it had counted when the logs were last looked at.

import { Store } from "./store";

const KEY = "reactor.errors-read";
interface Read {
  /** The process the count belongs to. */
  started_us: number;
  seen: number;
}
function stored(): Read {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "") as Read;
  } catch {
    return { started_us: 0, seen: 0 };
  }
}
export const errorsRead = new Store<Read>(typeof localStorage === "undefined" ? { started_us: 0, seen: 0 } : stored());

export function markErrorsRead(started_us: number, seen: number): void {
  const now = errorsRead.get();
  if (now.started_us === started_us && now.seen >= seen) return;
  errorsRead.set({ started_us, seen });
  localStorage.setItem(KEY, JSON.stringify({ started_us, seen }));
}
export function unreadErrors(read: Read, started_us: number | undefined, counted: number | undefined): number {
  if (counted === undefined || started_us === undefined) return 0;
  return Math.max(0, counted - (read.started_us === started_us ? read.seen : 0));
}
