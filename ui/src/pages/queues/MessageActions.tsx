// What can be done with one ready message.

import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { problemFrom, send } from "../../api/client";
import type { MovedMessages, PeekedMessage, QueueDetail } from "../../api/types";
import { Confirm } from "../../parts/Confirm";
import { bytes, count } from "../../parts/format";
import { Menu, type MenuItem } from "../../parts/Menu";
import { type Done, moveBack, useAction } from "./action";
import { deathOf, placeOf } from "./queue";

interface MessageActionsProps {
  message: PeekedMessage;
  queue: QueueDetail;
  path: string;
  close: () => void;
  move: (ids: number[]) => void;
  done: (done: Done) => void;
}

const GONE = "It was delivered or removed meanwhile.";

export function MessageActions({ message, queue, path, close, move, done }: MessageActionsProps) {
  const [dropping, setDropping] = useState(false);
  const death = deathOf(message, queue.name);
  const ids = [[message.id, message.id]];
  const own = { queue, path, close, done };
  const requeue = useAction(
    () => send<MovedMessages>("POST", `${path}/move`, { to: queue.name, ids }),
    own,
    (answer) => ({ words: answer?.moved ? "Sent to the back of the queue." : GONE, undo: null }),
  );
  const redrive = useAction(
    () => send<MovedMessages>("POST", `${path}/redrive`, { ids }),
    own,
    (answer) =>
      answer?.moved
        ? { words: `Sent back to ${death?.queue}.`, undo: moveBack(queue.space, queue.name, answer) }
        : { words: `Not sent: ${death?.queue} is gone, or the message is.`, undo: null },
  );
  const items: MenuItem[] = [
    { label: "Move…", run: () => move([message.id]) },
    { label: "Requeue at the back", run: () => requeue.mutate() },
    ...(death ? [{ label: `Send back to ${death.queue}`, run: () => redrive.mutate() }] : []),
    { label: "Delete…", danger: true, apart: true, run: () => setDropping(true) },
  ];
  const problem = requeue.error ?? redrive.error;
  return (
    <>
      {problem ? (
        <span className="err tiny cut" role="alert" title={problemFrom(problem).detail}>
          {problemFrom(problem).detail}
        </span>
      ) : null}
      <Menu label="Do with the message" button="Actions" className="btn sm" items={items} align="right" />
      {dropping ? (
        <Drop message={message} queue={queue} path={path} done={done} closed={close} close={() => setDropping(false)} />
      ) : null}
    </>
  );
}

interface DropProps extends Omit<MessageActionsProps, "move"> {
  closed: () => void;
}

function Drop({ message, queue, path, done, close, closed }: DropProps) {
  const drop = useMutation({
    mutationFn: () => send("DELETE", `${path}/messages/${message.id}`),
    onSuccess: () => {
      done({ words: "1 message deleted.", undo: null });
      closed();
    },
  });
  return (
    <Confirm
      title={`Delete one message of ${queue.name}`}
      keep="Keep it"
      act="Delete 1 message"
      danger
      disabled={drop.isPending}
      error={drop.error}
      run={() => drop.mutate()}
      close={close}
    >
      <p>
        The message at place {count(placeOf(message))}, {bytes(message.bytes)} with the key{" "}
        <span className="mono">{message.routing_key || "(empty)"}</span>, will be gone; this cannot be undone.
      </p>
    </Confirm>
  );
}
