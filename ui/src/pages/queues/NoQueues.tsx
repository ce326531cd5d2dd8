// A space without queues: what would stand here, and a program that makes one.

import { useQuery } from "@tanstack/react-query";
import { get } from "../../api/client";
import type { Snippet as SnippetFile } from "../../api/types";
import { Empty } from "../../parts/Region";
import { Snippet, useSnippet } from "../../parts/Snippet";

const SERVICE = "greeter";

export function NoQueues({ declare }: { declare: () => void }) {
  const { data } = useQuery({
    queryKey: ["snippets"],
    queryFn: ({ signal }) => get<SnippetFile[]>("snippets", {}, signal),
    staleTime: 60_000,
  });
  const [chosen, choose] = useSnippet(data ?? []);
  return (
    <div className="no-queues">
      <Empty title="No queues yet">
        Queues that programs declare stand here with their depth, rates and waiting time. Any RabbitMQ client makes one:
        this program does, and its queue is a service at the same time.{" "}
        <button type="button" className="link" onClick={declare}>
          Declare one by hand
        </button>
      </Empty>
      {chosen && data ? (
        <>
          <Snippet snippets={data} chosen={chosen} choose={choose} change={SERVICE} />
          <p className="meta tiny">
            <code>{chosen.install}</code>, then <code>{chosen.run}</code>
          </p>
        </>
      ) : null}
    </div>
  );
}
