// Doing something to messages: run it, refresh what shows messages, say what was done and how it is undone.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { apiPath, segment, send } from "../../api/client";
import type { MovedMessages, Queue } from "../../api/types";
import { readCount } from "./message";

/** What was done, to be said below the messages and, for half a minute, undone. */
export interface Done {
  words: string;
  undo: (() => Promise<unknown>) | null;
}
export interface ActionProps {
  queue: Queue;
  path: string;
  close: () => void;
  done: (done: Done) => void;
}

export function useAction<T>(run: () => Promise<T>, { close, done }: ActionProps, say: (answer: T) => Done) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: run,
    onSuccess: (answer) => {
      void queries.invalidateQueries({ queryKey: ["messages"] });
      void queries.invalidateQueries({ queryKey: ["queue"] });
      done(say(answer));
      close();
    },
  });
}

/** Moves messages back to the queue they came from. */
export const moveBack = (space: string, home: string, moved: MovedMessages | null) => async () => {
  const placed = moved?.placed ?? [];
  for (const queue of new Set(placed.map((p) => p.queue))) {
    const ids = placed.filter((p) => p.queue === queue).map((p) => [p.first, p.last]);
    await send("POST", `queues/${segment(space)}/${segment(queue)}/move`, { to: home, ids });
  }
};

/** A path with parameters as `send` takes it: below /api/v1. */
export const pathWith = (path: string, params: Record<string, number | string | boolean | null>): string =>
  apiPath(path, params).slice("/api/v1/".length);

/** All ready messages, or the oldest few. */
export function useHowMany(ready: number) {
  const [some, setSome] = useState(false);
  const [text, setText] = useState("100");
  const wanted = some ? readCount(text) : ready;
  return { some, setSome, text, setText, n: wanted === null ? null : Math.min(wanted, ready) };
}
