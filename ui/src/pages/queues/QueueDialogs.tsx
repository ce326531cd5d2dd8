// What is done to a queue and must be confirmed: the exact count and the target stand on the button.

import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, problemFrom, send } from "../../api/client";
import type { MovedMessages, Purged, RedriveOrigin, RedrivePlan } from "../../api/types";
import { useQueueNames } from "../../live/useList";
import { Confirm } from "../../parts/Confirm";
import { Check, Choice, TextField } from "../../parts/Form";
import { count, plural } from "../../parts/format";
import { Fault, Outlines } from "../../parts/Region";
import { type ActionProps, moveBack, pathWith, useAction, useHowMany } from "./action";
import { QueueName } from "./links";
import { useSettled } from "./WouldRoute";

function HowMany({ all, many }: { all: number; many: ReturnType<typeof useHowMany> }) {
  return (
    <Choice
      label="How many"
      value={many.some ? "some" : "all"}
      onChange={(v) => many.setSome(v === "some")}
      options={[
        ["all", `All ${plural(all, "ready message")}`],
        [
          "some",
          <>
            The oldest
            <input
              className="field"
              inputMode="numeric"
              aria-label="How many of the oldest"
              value={many.text}
              onFocus={() => many.setSome(true)}
              onChange={(event) => many.setText(event.target.value)}
            />
          </>,
        ],
      ]}
    />
  );
}

export function PurgeDialog(props: ActionProps) {
  const { queue, path, close } = props;
  const many = useHowMany(queue.ready);
  const purge = useAction(
    () => send<Purged>("POST", many.some ? pathWith(`${path}/purge`, { first: many.n }) : `${path}/purge`),
    props,
    (answer) => ({ words: `${plural(answer?.messages ?? 0, "message")} purged.`, undo: null }),
  );
  return (
    <Confirm
      title={`Purge ${queue.name}`}
      keep="Keep them"
      act={`Purge ${plural(many.n ?? 0, "message")}`}
      danger
      disabled={purge.isPending || !many.n}
      error={purge.error}
      run={() => purge.mutate()}
      close={close}
    >
      <HowMany all={queue.ready} many={many} />
      <p>
        They will be gone from <span className="mono">{queue.name}</span> in space{" "}
        <span className="mono">{queue.space}</span>; this cannot be undone.
        {queue.unacked > 0 ? ` ${plural(queue.unacked, "unacked message")} stay with their consumers.` : ""}
      </p>
    </Confirm>
  );
}

export function MoveDialog(props: ActionProps & { ids?: readonly number[] | undefined }) {
  const { queue, path, close, ids } = props;
  const [to, setTo] = useState("");
  const names = useQueueNames(queue.space, useSettled(to, 200)).filter((q) => q.name !== queue.name);
  const many = useHowMany(queue.ready);
  const n = ids ? ids.length : many.n;
  const known = names.some((q) => q.name === to);
  const wish = ids ? { to, ids: ids.map((id) => [id, id]) } : { to, first: many.n };
  const move = useAction(
    () => send<MovedMessages>("POST", `${path}/move`, wish),
    props,
    (answer) => ({
      words: `${plural(answer?.moved ?? 0, "message")} moved to ${to}${answer && answer.left > 0 ? `, ${count(answer.left)} stayed` : ""}.`,
      undo: moveBack(queue.space, queue.name, answer),
    }),
  );
  return (
    <Confirm
      title={ids ? `Move ${plural(ids.length, "message")} of ${queue.name}` : `Move messages of ${queue.name}`}
      keep="Leave them"
      act={`Move ${plural(n ?? 0, "message")}${known ? ` to ${to}` : ""}`}
      disabled={move.isPending || !n || !known}
      error={move.error}
      run={() => move.mutate()}
      close={close}
    >
      <TextField
        label="To queue"
        mono
        value={to}
        onChange={setTo}
        list={names.slice(0, 100).map((q) => q.name)}
        autoFocus
        wrong={to !== "" && names.length === 0 ? "No other queue in this space has that in its name" : null}
        hint="They go to its back, with their properties, headers, exchange and key."
      />
      {ids ? null : <HowMany all={queue.ready} many={many} />}
    </Confirm>
  );
}

export function RedriveDialog(props: ActionProps) {
  const { queue, path, close } = props;
  const [only, setOnly] = useState("");
  const plan = useQuery({
    queryKey: ["redrive", path],
    queryFn: ({ signal }) => get<RedrivePlan>(`${path}/redrive`, {}, signal),
    refetchInterval: 5000,
  });
  const origins = plan.data?.origins ?? [];
  const back = origins.filter((o) => o.exists);
  const n = back.filter((o) => only === "" || o.queue === only).reduce((sum, o) => sum + o.messages, 0);
  const queues = [...new Set(back.map((o) => o.queue))];
  const redrive = useAction(
    () => send<MovedMessages>("POST", `${path}/redrive`, { first: n, ...(only ? { only } : {}) }),
    props,
    (answer) => ({
      words: `${plural(answer?.moved ?? 0, "dead letter")} sent back to ${only || (queues.length === 1 ? queues[0] : plural(queues.length, "queue"))}.`,
      undo: moveBack(queue.space, queue.name, answer),
    }),
  );
  return (
    <Confirm
      title={`Send dead letters of ${queue.name} back`}
      keep="Leave them"
      act={`Send ${plural(n, "message")} back`}
      disabled={redrive.isPending || n === 0}
      error={redrive.error}
      run={() => redrive.mutate()}
      close={close}
    >
      {plan.error ? <Fault problem={problemFrom(plan.error)} /> : null}
      {plan.isPending ? <Outlines rows={2} /> : null}
      {plan.data ? <Origins plan={plan.data} space={queue.space} /> : null}
      {queues.length > 1 ? (
        <Choice
          label="Which"
          value={only}
          onChange={setOnly}
          options={[
            ["", "All of them, each to its own queue"],
            ...queues.map((q) => [q, `Only those of ${q}`] as const),
          ]}
        />
      ) : null}
    </Confirm>
  );
}

function Origins({ plan, space }: { plan: RedrivePlan; space: string }) {
  if (plan.origins.length === 0) {
    return (
      <p>
        No message here says where it died. Dead letters carry an <code>x-death</code> header; a queue makes them when
        it has a dead-letter exchange, by its argument <code>x-dead-letter-exchange</code> or by a policy.
      </p>
    );
  }
  const row = (o: RedriveOrigin) => (
    <tr key={`${o.queue} ${o.reason}`}>
      <td>
        {o.exists ? <QueueName space={space} name={o.queue} /> : <span className="mono dim">{o.queue} (gone)</span>}
      </td>
      <td>{o.reason}</td>
      <td className="num">{count(o.messages)}</td>
    </tr>
  );
  return (
    <>
      <table className="table plan">
        <thead>
          <tr>
            <th scope="col">Died in</th>
            <th scope="col">Why</th>
            <th scope="col" className="num">
              Messages
            </th>
          </tr>
        </thead>
        <tbody>{plan.origins.map(row)}</tbody>
      </table>
      <p className="meta">
        Each goes to the back of the queue it died in, with the exchange and key it had there.
        {plan.without > 0 ? ` ${plural(plan.without, "message")} without a record of a death stay.` : ""}
        {plan.looked_at < plan.ready
          ? ` Counted among the first ${count(plan.looked_at)} of ${count(plan.ready)}.`
          : ""}
      </p>
    </>
  );
}

export function DeleteDialog(props: Omit<ActionProps, "done"> & { deleted: () => void }) {
  const { queue, path, close, deleted } = props;
  const [ifEmpty, setIfEmpty] = useState(queue.ready === 0);
  const [ifUnused, setIfUnused] = useState(queue.consumers === 0);
  const remove = useMutation({
    mutationFn: () => send("DELETE", pathWith(path, { if_empty: ifEmpty, if_unused: ifUnused })),
    onSuccess: deleted,
  });
  const held = queue.ready + queue.unacked;
  return (
    <Confirm
      title={`Delete ${queue.name}`}
      keep="Keep it"
      act={`Delete the queue${held > 0 && !ifEmpty ? ` and ${plural(held, "message")}` : ""}`}
      danger
      disabled={remove.isPending}
      error={remove.error}
      run={() => remove.mutate()}
      close={close}
    >
      <p>
        <span className="mono">{queue.name}</span> goes with its bindings
        {held > 0 ? ` and the ${plural(held, "message")} it holds` : ""}; this cannot be undone.
        {queue.consumers > 0 ? ` ${plural(queue.consumers, "consumer")} will be cancelled.` : ""}
      </p>
      <Check label="Only if no message is ready" on={ifEmpty} onChange={setIfEmpty} />
      <Check label="Only if nobody consumes it" on={ifUnused} onChange={setIfUnused} />
    </Confirm>
  );
}
