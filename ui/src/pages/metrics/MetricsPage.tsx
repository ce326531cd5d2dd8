import { PageHead } from "../../frame/PageHead";

export function MetricsPage() {
  return <PageHead title="Metrics" />;
}
