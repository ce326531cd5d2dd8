import { PageHead } from "../../frame/PageHead";

export function OverviewPage() {
  return <PageHead title="Overview" />;
}
