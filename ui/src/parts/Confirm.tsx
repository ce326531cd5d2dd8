// Dialogs that do one thing: confirm what cannot be undone; make, change and remove an entry.

import { type QueryKey, useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { problemFrom, send } from "../api/client";
import { Dialog } from "./Dialog";
import { Fault } from "./Region";

interface ConfirmProps {
  title: string;
  keep: string;
  act: ReactNode;
  danger?: boolean;
  disabled: boolean;
  error: Error | null;
  run: () => void;
  close: () => void;
  children: ReactNode;
}

/** What will happen, and two buttons: leave it, or do exactly that. */
export function Confirm({ title, keep, act, danger = false, disabled, error, run, close, children }: ConfirmProps) {
  return (
    <Dialog
      title={title}
      close={close}
      submit={run}
      foot={
        <>
          <button type="button" className="btn" onClick={close}>
            {keep}
          </button>
          <button type="submit" className={`btn ${danger ? "danger" : "primary"}`} disabled={disabled}>
            {act}
          </button>
        </>
      }
    >
      <div className="form">{children}</div>
      {error ? <Fault problem={problemFrom(error)} /> : null}
    </Dialog>
  );
}

/** Saving and deleting an entry: both refresh the lists under `queryKey` and close the dialog. */
export function useEdit(queryKey: QueryKey, path: string, body: () => unknown, close: () => void) {
  const queries = useQueryClient();
  const onSuccess = () => {
    void queries.invalidateQueries({ queryKey });
    close();
  };
  const put = useMutation({ mutationFn: () => send("PUT", path, body()), onSuccess });
  const remove = useMutation({ mutationFn: () => send("DELETE", path), onSuccess });
  return { put, remove };
}

interface EditDialogProps {
  title: string;
  /** What the button that saves says. */
  act: string;
  disabled: boolean;
  edit: ReturnType<typeof useEdit>;
  close: () => void;
  /** An entry that exists may be taken away, which is asked once more. */
  removal?: { link: string; title: string; keep: string; act: string; words: ReactNode } | null;
  children: ReactNode;
}

export function EditDialog({ title, act, disabled, edit, close, removal, children }: EditDialogProps) {
  const [removing, setRemoving] = useState(false);
  const { put, remove } = edit;
  if (removing && removal) {
    return (
      <Confirm
        title={removal.title}
        keep={removal.keep}
        act={removal.act}
        danger
        disabled={remove.isPending}
        error={remove.error}
        run={() => remove.mutate()}
        close={() => setRemoving(false)}
      >
        <p>{removal.words}</p>
      </Confirm>
    );
  }
  return (
    <Confirm
      title={title}
      keep="Cancel"
      act={act}
      disabled={disabled || put.isPending}
      error={put.error}
      run={() => put.mutate()}
      close={close}
    >
      {children}
      {removal ? (
        <p>
          <button type="button" className="link err" onClick={() => setRemoving(true)}>
            {removal.link}
          </button>
        </p>
      ) : null}
    </Confirm>
  );
}
