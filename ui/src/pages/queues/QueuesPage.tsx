import { PageHead } from "../../frame/PageHead";

export function QueuesPage() {
  return <PageHead title="Queues" />;
}
