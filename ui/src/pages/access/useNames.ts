import { useQuery } from "@tanstack/react-query";
import { get } from "../../api/client";

/** Names to choose from in a dialog. */
export function useNames(path: string, params: Record<string, string> = {}): string[] {
  const { data } = useQuery({
    queryKey: ["access", "names", path, params],
    queryFn: ({ signal }) => get<(string | { name: string; kind?: string })[]>(path, params, signal),
  });
  return (data ?? []).map((row) => (typeof row === "string" ? row : row.name));
}
