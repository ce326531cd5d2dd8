// Purging cannot be undone: the exact count and the target stand on the button.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { problemFrom, send } from "../../api/client";
import type { Queue } from "../../api/types";
import { Dialog } from "../../parts/Dialog";
import { plural } from "../../parts/format";
import { Fault } from "../../parts/Region";

export function PurgeDialog({ queue, path, close }: { queue: Queue; path: string; close: () => void }) {
  const queries = useQueryClient();
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => send("POST", `${path}/purge`),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ["messages", path] });
      close();
    },
  });
  return (
    <Dialog
      title={`Purge ${queue.name}`}
      close={close}
      foot={
        <>
          <button type="button" className="btn" onClick={close}>
            Keep them
          </button>
          <button
            type="button"
            className="btn danger"
            disabled={isPending || queue.ready === 0}
            onClick={() => mutate()}
          >
            Purge {plural(queue.ready, "message")}
          </button>
        </>
      }
    >
      <p className="pad">
        {plural(queue.ready, "ready message")} of <span className="mono">{queue.name}</span> in space{" "}
        <span className="mono">{queue.space}</span> will be gone; this cannot be undone.
        {queue.unacked > 0 ? ` ${plural(queue.unacked, "unacked message")} stay with their consumers.` : ""}
      </p>
      {error ? <Fault problem={problemFrom(error)} /> : null}
    </Dialog>
  );
}
