// Start, stop, restart: only where reactor owns the process. A refusal is said beside the buttons.

import { useMutation } from "@tanstack/react-query";
import { problemFrom, segment, send } from "../../api/client";
import type { Instance, Service } from "../../api/types";
import { Icon, type IconName } from "../../parts/Icon";
import { commandsFor } from "./rows";

type Command = "start" | "stop" | "restart";
const LOOK: Record<Command, { icon: IconName; verb: string }> = {
  start: { icon: "play", verb: "Start" },
  stop: { icon: "stop", verb: "Stop" },
  restart: { icon: "redo", verb: "Restart" },
};

export function commandPath(service: string, command: Command, instance?: string | null): string {
  return `services/${segment(service)}/${command}${instance ? `?instance=${segment(instance)}` : ""}`;
}

export function Commands({ service, instance }: { service: Service; instance: Instance | null }) {
  const { mutate, error, isPending } = useMutation({
    mutationFn: (command: Command) => send("POST", commandPath(service.name, command, instance?.name)),
  });
  if (!service.owned) return null;
  const states = instance ? [instance.state] : service.instances.map((i) => i.state);
  const name = instance?.name ?? service.name;
  return (
    <span className="commands">
      {error ? (
        <span className="err tiny cut" role="alert" title={problemFrom(error).next}>
          {problemFrom(error).detail}
        </span>
      ) : null}
      {commandsFor(states).map((command) => (
        <button
          key={command}
          type="button"
          className="btn icon"
          disabled={isPending}
          aria-label={`${LOOK[command].verb} ${name}`}
          title={`${LOOK[command].verb} ${name}`}
          onClick={() => mutate(command)}
        >
          <Icon name={LOOK[command].icon} size={14} />
        </button>
      ))}
    </span>
  );
}
