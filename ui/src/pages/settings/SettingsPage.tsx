import { PageHead } from "../../frame/PageHead";

export function SettingsPage() {
  return <PageHead title="Settings" />;
}
