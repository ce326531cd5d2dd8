// One message by hand: where it would go is said before it is sent.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { problemFrom, send } from "../../api/client";
import type { Published } from "../../api/types";
import { Dialog } from "../../parts/Dialog";
import { Check, TextField } from "../../parts/Form";
import { plural } from "../../parts/format";
import { Fault } from "../../parts/Region";
import { NO_PROPERTIES, readHeaders, readProperties, typeOf, type Wished } from "./message";
import { WouldRoute } from "./WouldRoute";

interface PublishDialogProps {
  space: string;
  exchange: string;
  routingKey: string;
  /** A queue's page publishes to that queue: there is nothing to choose. */
  fixed?: boolean;
  close: () => void;
}

export function PublishDialog({ space, exchange, routingKey, fixed = false, close }: PublishDialogProps) {
  const queries = useQueryClient();
  const [key, setKey] = useState(routingKey);
  const [body, setBody] = useState("");
  const [lines, setLines] = useState("");
  const [wished, setWished] = useState<Wished>(NO_PROPERTIES);
  const [sent, setSent] = useState({ count: 0, routed: true });
  const { headers, wrong } = readHeaders(lines);
  const read = readProperties({ ...wished, content_type: wished.content_type || typeOf(body) });
  const bad = wrong !== null || Object.keys(read.wrong).length > 0;
  const publish = useMutation({
    mutationFn: () =>
      send<Published>("POST", "publish", {
        space,
        exchange,
        routing_key: key,
        body,
        headers,
        properties: read.properties,
      }),
    onSuccess: (answer) => {
      setSent((s) => ({ count: s.count + 1, routed: answer?.routed ?? false }));
      void queries.invalidateQueries({ queryKey: ["messages"] });
    },
  });
  return (
    <Dialog
      title={fixed ? `Publish to ${routingKey}` : `Publish to ${exchange || "the default exchange"}`}
      close={close}
      submit={() => publish.mutate()}
      foot={
        <>
          <span className={`grow tiny ${sent.routed ? "meta" : "warn"}`} role="status">
            {sent.count === 0
              ? ""
              : sent.routed
                ? `${plural(sent.count, "message")} published`
                : "Published, and no queue took it: it was dropped"}
          </span>
          <button type="button" className="btn" onClick={close}>
            Close
          </button>
          <button type="submit" className="btn primary" disabled={bad || publish.isPending}>
            Publish
          </button>
        </>
      }
    >
      <div className="form">
        {fixed ? null : (
          <>
            <TextField label="Routing key" mono value={key} onChange={setKey} autoFocus />
            <WouldRoute space={space} exchange={exchange} routingKey={key} headers={headers} />
          </>
        )}
        <TextField
          label="Body"
          mono
          rows={6}
          value={body}
          onChange={setBody}
          autoFocus={fixed}
          placeholder='{"order":77157}'
        />
        <TextField
          label="Headers"
          mono
          rows={2}
          value={lines}
          onChange={setLines}
          wrong={wrong}
          hint="One a line, name: value. Numbers, true, false and JSON keep their type."
          placeholder="tenant: blue"
        />
        <Check
          label="Persistent"
          hint="delivery_mode 2. Kept in memory like every message until there is a store on disk."
          on={wished.persistent}
          onChange={(persistent) => setWished((w) => ({ ...w, persistent }))}
        />
        <Properties wished={wished} setWished={setWished} wrong={read.wrong} guess={typeOf(body)} />
      </div>
      {publish.error ? <Fault problem={problemFrom(publish.error)} /> : null}
    </Dialog>
  );
}

interface PropertiesProps {
  wished: Wished;
  setWished: (change: (w: Wished) => Wished) => void;
  wrong: Partial<Record<keyof Wished, string>>;
  guess: string;
}
const FIELDS = [
  ["content_type", "Content type"],
  ["type", "Type"],
  ["message_id", "Message id"],
  ["correlation_id", "Correlation id"],
  ["reply_to", "Reply to"],
  ["expiration", "Expires, ms"],
  ["priority", "Priority"],
] as const;

function Properties({ wished, setWished, wrong, guess }: PropertiesProps) {
  return (
    <details className="form-more">
      <summary>Properties</summary>
      <div className="form-pair">
        {FIELDS.map(([name, label]) => (
          <TextField
            key={name}
            label={label}
            mono
            value={wished[name]}
            onChange={(value) => setWished((w) => ({ ...w, [name]: value }))}
            wrong={wrong[name]}
            placeholder={name === "content_type" ? guess : ""}
          />
        ))}
      </div>
    </details>
  );
}
