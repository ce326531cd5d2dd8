import { PageHead } from "../../frame/PageHead";

export function TracesPage() {
  return <PageHead title="Traces" />;
}
