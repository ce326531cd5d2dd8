// A dialog on the browser's own element: it traps focus, closes on Escape and gives focus back. Only for what must be confirmed,
// and for overlays the reader asked for.

import { type ReactNode, useLayoutEffect, useRef } from "react";
import { Icon } from "./Icon";

interface DialogProps {
  title: string;
  close: () => void;
  children: ReactNode;
  foot?: ReactNode;
  /** What Enter in a field does, and Ctrl+Enter in a text of many lines, while the foot's button of type `submit` can be pressed. */
  submit?: () => void;
}

export function Dialog({ title, close, children, foot, submit }: DialogProps) {
  const node = useRef<HTMLDialogElement>(null);
  const form = useRef<HTMLFormElement>(null);
  // Before the element is taken out: only then does the browser give focus back.
  useLayoutEffect(() => {
    const dialog = node.current;
    dialog?.showModal();
    // An element that is not shown yet takes no focus, so React's autoFocus comes too early.
    dialog?.querySelector<HTMLElement>("[data-first]")?.focus();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={node}
      className="dialog"
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
        event.preventDefault();
        const act = form.current?.querySelector<HTMLButtonElement>("button[type=submit]:enabled");
        if (act) form.current?.requestSubmit(act);
      }}
      onClick={(event) => {
        if (event.target === node.current) close();
      }}
    >
      <form
        ref={form}
        className="dialog-body"
        onSubmit={(event) => {
          event.preventDefault();
          submit?.();
        }}
      >
        <header>
          <h2>{title}</h2>
          <button type="button" className="btn sm ghost" aria-label="Close" onClick={close}>
            <Icon name="close" size={14} />
          </button>
        </header>
        {children}
        {foot ? <footer>{foot}</footer> : null}
      </form>
    </dialog>
  );
}
