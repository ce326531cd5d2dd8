import { PageHead } from "../../frame/PageHead";

export function ChangesPage() {
  return <PageHead title="Changes" />;
}
