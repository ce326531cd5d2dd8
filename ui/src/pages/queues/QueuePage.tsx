import { PageHead } from "../../frame/PageHead";

export function QueuePage() {
  return <PageHead title="Queue" />;
}
