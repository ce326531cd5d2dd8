import { PageHead } from "../../frame/PageHead";

export function MorePage() {
  return <PageHead title="More" />;
}
