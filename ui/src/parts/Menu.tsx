// A button with a menu: roving focus, type-ahead, closes on Escape, outside press or a choice. Data ticks never close it.

import { type ReactNode, useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import { Icon } from "./Icon";

export interface MenuItem {
  label: string;
  run: () => void;
  /** A key, or what the item is. */
  hint?: string;
  on?: boolean;
  danger?: boolean;
  /** A line above it. */
  apart?: boolean;
  /** Stay open: for lists of checks. */
  stays?: boolean;
}

interface MenuProps {
  label: string;
  button: ReactNode;
  items: MenuItem[];
  className?: string;
  align?: "left" | "right";
}

export function Menu({ label, button, items, className = "btn", align = "left" }: MenuProps) {
  const [open, setOpen] = useState(false);
  const anchor = useRef<HTMLButtonElement>(null);
  const id = useId();
  const close = (refocus: boolean) => {
    setOpen(false);
    if (refocus) anchor.current?.focus();
  };
  return (
    <span className="menu-anchor">
      <button
        ref={anchor}
        type="button"
        className={className}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => setOpen(!open)}
        onKeyDown={(event) => {
          if (event.key !== "ArrowDown" || open) return;
          event.preventDefault();
          setOpen(true);
        }}
      >
        {typeof button === "string" ? null : <span className="hidden">{label}: </span>}
        {button}
      </button>
      {open ? (
        <MenuList id={id} label={label} items={items} align={align} anchor={anchor.current} close={close} />
      ) : null}
    </span>
  );
}

interface MenuListProps {
  id: string;
  label: string;
  items: MenuItem[];
  align: "left" | "right";
  anchor: HTMLElement | null;
  close: (refocus: boolean) => void;
}

/** Where the focus goes: arrows round, Home, End, or the next item that begins with the letter. */
function moved(event: React.KeyboardEvent, at: number, items: readonly MenuItem[]): number | null {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) return (at + step + items.length) % items.length;
  if (event.key === "Home") return 0;
  if (event.key === "End") return items.length - 1;
  if (event.key.length !== 1 || event.ctrlKey || event.metaKey || event.key === " ") return null;
  const begins = (item: MenuItem) => item.label.toLowerCase().startsWith(event.key.toLowerCase());
  const after = items.findIndex((item, i) => i > at && begins(item));
  const found = after >= 0 ? after : items.findIndex(begins);
  return found >= 0 ? found : null;
}

function MenuList({ id, label, items, align, anchor, close }: MenuListProps) {
  const list = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState(() =>
    Math.max(
      0,
      items.findIndex((item) => item.on),
    ),
  );
  const checks = items.some((item) => item.on !== undefined);

  useLayoutEffect(() => {
    const node = list.current;
    if (!node || !anchor) return;
    const box = anchor.getBoundingClientRect();
    const left = align === "right" ? box.right - node.offsetWidth : box.left;
    node.style.left = `${Math.max(8, Math.min(left, window.innerWidth - node.offsetWidth - 8))}px`;
    const below = box.bottom + 4;
    node.style.top = `${below + node.offsetHeight > window.innerHeight - 8 ? Math.max(8, box.top - node.offsetHeight - 4) : below}px`;
  }, [anchor, align]);
  useEffect(() => {
    const item = list.current?.querySelectorAll<HTMLElement>("[role^=menuitem]")[at];
    item?.focus({ preventScroll: true });
    item?.scrollIntoView({ block: "nearest" });
  }, [at]);
  useEffect(() => {
    const outside = (event: PointerEvent) => {
      const target = event.target as Node;
      if (!list.current?.contains(target) && !anchor?.contains(target)) close(false);
    };
    document.addEventListener("pointerdown", outside, true);
    return () => document.removeEventListener("pointerdown", outside, true);
  }, [anchor, close]);

  const onKeyDown = (event: React.KeyboardEvent) => {
    const next = moved(event, at, items);
    if (next !== null) setAt(next);
    else if (event.key === "Escape") close(true);
    else if (event.key === "Tab") close(false);
    else return;
    event.stopPropagation();
    if (event.key !== "Tab") event.preventDefault();
  };

  return (
    <div ref={list} id={id} className="menu" role="menu" aria-label={label} tabIndex={-1} onKeyDown={onKeyDown}>
      {items.map((item, i) => (
        <button
          key={item.label}
          type="button"
          role={checks ? "menuitemcheckbox" : "menuitem"}
          aria-checked={checks ? Boolean(item.on) : undefined}
          tabIndex={i === at ? 0 : -1}
          className={`menu-item${item.danger ? " err" : ""}${item.apart ? " apart" : ""}`}
          onPointerMove={() => setAt(i)}
          onClick={() => {
            item.run();
            if (!item.stays) close(true);
          }}
        >
          {checks ? <span className="menu-check">{item.on ? <Icon name="done" size={12} /> : null}</span> : null}
          {item.label}
          {item.hint ? <kbd>{item.hint}</kbd> : null}
        </button>
      ))}
    </div>
  );
}
