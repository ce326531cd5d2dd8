// Copies a text and says so on the button for a moment. Without a clipboard (plain HTTP from elsewhere) it selects instead.

import { type ReactNode, useEffect, useState } from "react";
import { Icon, type IconName } from "./Icon";

interface CopyButtonProps {
  text: string;
  label: string;
  /** Words on the button; an icon alone without them. */
  children?: ReactNode;
  className?: string;
  icon?: IconName;
}

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "hidden";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

export function CopyButton({ text, label, children, className = "btn sm", icon = "copy" }: CopyButtonProps) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <button
      type="button"
      className={className}
      aria-label={children ? undefined : label}
      title={label}
      onClick={() => void copyText(text).then(setCopied)}
    >
      <Icon name={copied ? "done" : icon} size={13} />
      {children}
      {copied ? (
        <span className="hidden" role="status">
          Copied
        </span>
      ) : null}
    </button>
  );
}
