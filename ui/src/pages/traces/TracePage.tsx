import { PageHead } from "../../frame/PageHead";

export function TracePage() {
  return <PageHead title="Trace" />;
}
