// What was just done, and for half a minute the way back.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { problemFrom } from "../../api/client";
import type { Done } from "./action";

const UNDO_S = 30;

export function Undo({ done, clear }: { done: Done; clear: () => void }) {
  const queries = useQueryClient();
  const [left, setLeft] = useState(UNDO_S);
  const undo = useMutation({
    mutationFn: async () => done.undo?.(),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ["messages"] });
      clear();
    },
  });
  useEffect(() => {
    const timer = setInterval(() => setLeft((s) => s - 1), 1000);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => {
    if (left <= 0) clear();
  }, [left, clear]);
  return (
    <div className="undo">
      <span role="status">{undo.error ? problemFrom(undo.error).detail : done.words}</span>
      {done.undo ? (
        <button type="button" className="btn sm" disabled={undo.isPending} onClick={() => undo.mutate()}>
          Undo <span className="meta">{Math.max(0, left)} s</span>
        </button>
      ) : null}
      <button type="button" className="btn sm ghost" onClick={clear}>
        Close
      </button>
    </div>
  );
}
