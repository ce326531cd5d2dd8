import { PageHead } from "../../frame/PageHead";

export function ServicesPage() {
  return <PageHead title="Services" />;
}
