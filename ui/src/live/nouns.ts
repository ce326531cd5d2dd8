// What the page knows by name: lines of text become links by it.

import { useMemo } from "react";
import type { Nouns } from "../parts/Happening";
import { useServices } from "./hooks";

export function useNouns(): Nouns {
  const { list: services } = useServices(null);
  // The names change rarely, the values every beat: the same object until a name comes or goes.
  const signature = JSON.stringify(services.map((s) => [s.name, s.instances.map((i) => i.name)]));
  return useMemo(() => {
    const named = JSON.parse(signature) as [string, string[]][];
    return {
      services: new Set(named.map(([name]) => name)),
      instances: new Map(named.flatMap(([name, instances]) => instances.map((instance) => [instance, name] as const))),
    };
  }, [signature]);
}
