// A dialog on the browser's own element: it traps focus, closes on Escape and gives focus back. Only for what must be confirmed,
// and for overlays the reader asked for.

import { type ReactNode, useEffect, useRef } from "react";
import { Icon } from "./Icon";

interface DialogProps {
  title: string;
  close: () => void;
  children: ReactNode;
  foot?: ReactNode;
}

export function Dialog({ title, close, children, foot }: DialogProps) {
  const node = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = node.current;
    dialog?.showModal();
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
      onKeyDown={(event) => event.stopPropagation()}
      onClick={(event) => {
        if (event.target === node.current) close();
      }}
    >
      <div className="dialog-body">
        <header>
          <h2>{title}</h2>
          <button type="button" className="btn sm ghost" aria-label="Close" onClick={close}>
            <Icon name="close" size={14} />
          </button>
        </header>
        {children}
        {foot ? <footer>{foot}</footer> : null}
      </div>
    </dialog>
  );
}
