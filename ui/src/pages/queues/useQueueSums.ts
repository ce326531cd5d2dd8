// Totals over all queues of a space, whatever the list shows.

import { useQuery } from "@tanstack/react-query";
import { get } from "../../api/client";
import type { QueuePage } from "../../api/types";

export function useQueueSums(space: string): QueuePage | null {
  const { data } = useQuery({
    queryKey: ["queue-sums", space],
    queryFn: ({ signal }) => get<QueuePage>("queues/page", { space, count: 1 }, signal),
    refetchInterval: 2000,
    placeholderData: (before) => before,
  });
  return data ?? null;
}
