// Saving and deleting an entry: both refresh the lists and close the dialog.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { send } from "../../api/client";

export function useEdit(path: string, body: () => unknown, close: () => void) {
  const queries = useQueryClient();
  const onSuccess = () => {
    void queries.invalidateQueries({ queryKey: ["access"] });
    close();
  };
  const put = useMutation({ mutationFn: () => send("PUT", path, body()), onSuccess });
  const remove = useMutation({ mutationFn: () => send("DELETE", path), onSuccess });
  return { put, remove };
}
