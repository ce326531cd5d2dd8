// A queue or an exchange made by hand.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { segment, send } from "../../api/client";
import { Confirm } from "../../parts/Confirm";
import { Check, Choice, TextField } from "../../parts/Form";
import { exchangePath } from "./links";
import { readHeaders } from "./message";

const KINDS = [
  ["direct", "direct: to the queues bound with exactly this key"],
  ["topic", "topic: by patterns of words, * for one and # for any"],
  ["fanout", "fanout: to every bound queue"],
  ["headers", "headers: by the message's headers"],
] as const;

export function DeclareDialog({
  what,
  space,
  close,
}: {
  what: "queue" | "exchange";
  space: string;
  close: () => void;
}) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const [durable, setDurable] = useState(true);
  const [autoDelete, setAutoDelete] = useState(false);
  const [kind, setKind] = useState<(typeof KINDS)[number][0]>("topic");
  const [lines, setLines] = useState("");
  const { headers, wrong } = readHeaders(lines);
  const queue = what === "queue";
  const declare = useMutation({
    mutationFn: () =>
      send("PUT", `${what}s/${segment(space)}/${segment(name)}`, {
        durable,
        auto_delete: autoDelete,
        arguments: headers,
        ...(queue ? {} : { kind }),
      }),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ["list"] });
      void (queue
        ? navigate({ to: "/queues/$queueSpace/$queueName", params: { queueSpace: space, queueName: name } })
        : navigate({
            to: "/queues/-/exchanges/$exchangeSpace/$exchangeName",
            params: { exchangeSpace: space, exchangeName: exchangePath(name) },
          }));
    },
  });
  return (
    <Confirm
      title={`New ${what}`}
      keep="Cancel"
      act={`Declare ${name || `the ${what}`}`}
      disabled={name === "" || wrong !== null || declare.isPending}
      error={declare.error}
      run={() => declare.mutate()}
      close={close}
    >
      <TextField
        label="Name"
        mono
        value={name}
        onChange={setName}
        autoFocus
        placeholder={queue ? "worker.orders" : "orders"}
      />
      {queue ? null : <Choice label="Type" value={kind} options={KINDS} onChange={setKind} />}
      <Check
        label="Durable"
        hint="Its definition outlives its users. Messages are kept in memory until there is a store on disk."
        on={durable}
        onChange={setDurable}
      />
      <Check
        label="Auto-delete"
        hint={queue ? "Goes with its last consumer." : "Goes with its last binding."}
        on={autoDelete}
        onChange={setAutoDelete}
      />
      <TextField
        label="Arguments"
        mono
        rows={2}
        value={lines}
        onChange={setLines}
        wrong={wrong}
        hint="One a line, name: value, as programs declare them."
        placeholder={queue ? "x-max-length: 10000" : "alternate-exchange: unrouted"}
      />
    </Confirm>
  );
}
