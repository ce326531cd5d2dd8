import { Dialog } from "../parts/Dialog";
export function Palette({ close }: { close: () => void }) {
  return (
    <Dialog title="Go to or run" close={close}>
      …
    </Dialog>
  );
}
