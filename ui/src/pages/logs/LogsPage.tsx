import { PageHead } from "../../frame/PageHead";

export function LogsPage() {
  return <PageHead title="Logs" />;
}
