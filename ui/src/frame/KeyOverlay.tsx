import { useState } from "react";
import { caps, keyMap } from "../keys/keys";
import { Dialog } from "../parts/Dialog";

/** Every key that works here, read from the same map that runs them. */
export function KeyOverlay({ close }: { close: () => void }) {
  const [bindings] = useState(() => keyMap.listed());
  return (
    <Dialog title="Keys" close={close}>
      <dl className="keys">
        {bindings.map((binding) => (
          <div key={binding.keys}>
            <dt>
              {caps(binding.keys)
                .split(" ")
                .map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
            </dt>
            <dd>{binding.does}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
