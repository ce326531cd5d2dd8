// A page's title, one line of meta and its actions, put into the top bar of the frame.

import { createContext, type ReactNode, useContext, useEffect } from "react";
import { createPortal } from "react-dom";

export interface BarSlots {
  title: HTMLElement | null;
  actions: HTMLElement | null;
}
export const BarContext = createContext<BarSlots>({ title: null, actions: null });

interface PageHeadProps {
  title: ReactNode;
  /** The document's title when `title` is more than text. */
  name?: string;
  meta?: ReactNode;
  actions?: ReactNode;
}

export function PageHead({ title, name, meta, actions }: PageHeadProps) {
  const slots = useContext(BarContext);
  const words = name ?? (typeof title === "string" ? title : "");
  useEffect(() => {
    document.title = words ? `${words} · reactor` : "reactor";
  }, [words]);
  return (
    <>
      {slots.title
        ? createPortal(
            <>
              <h1>{title}</h1>
              {meta ? <span className="bar-meta wide-only">{meta}</span> : null}
            </>,
            slots.title,
          )
        : null}
      {slots.actions && actions ? createPortal(actions, slots.actions) : null}
    </>
  );
}
