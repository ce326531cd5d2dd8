import { useEffect, useRef, useState } from "react";
import { useNowUs, useServices } from "../live/hooks";
import { Announcements } from "./announce";

/** The one live region: state changes only, never rows or numbers. */
export function Announcer() {
  const { list, ready } = useServices(null);
  const now = useNowUs();
  const announcements = useRef(new Announcements());
  const [text, setText] = useState("");
  // biome-ignore lint/correctness/useExhaustiveDependencies: the beat moves what had to wait
  useEffect(() => {
    if (!ready) return;
    const next = announcements.current.next(list, performance.now());
    if (next) setText(next);
  }, [list, ready, now]);
  return (
    <div className="hidden" role="status" aria-live="polite">
      {text}
    </div>
  );
}
