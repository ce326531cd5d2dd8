// The ten-line service in six languages, from the API: the very files the tests run. The language is remembered.

import { type KeyboardEvent, useMemo, useRef, useState } from "react";
import type { Snippet as SnippetFile } from "../api/types";
import { useKeys } from "../keys/useKeys";
import { paint } from "../query/code";
import { CopyButton, copyText } from "./CopyButton";

const KEY = "reactor.language";
const remembered = (): string | null => localStorage.getItem(KEY);

export function useSnippet(snippets: readonly SnippetFile[]): [SnippetFile | undefined, (language: string) => void] {
  const [language, setLanguage] = useState(remembered);
  const choose = (next: string) => {
    setLanguage(next);
    localStorage.setItem(KEY, next);
  };
  return [snippets.find((s) => s.language === language) ?? snippets[0], choose];
}

interface SnippetProps {
  snippets: readonly SnippetFile[];
  chosen: SnippetFile;
  choose: (language: string) => void;
  /** The service's name in the text: the one thing to change. */
  change: string;
}

export function Snippet({ snippets, chosen, choose, change }: SnippetProps) {
  const tabs = useRef<HTMLDivElement>(null);
  const pieces = useMemo(() => paint(chosen.text.replace(/\n+$/, ""), chosen.language, change), [chosen, change]);
  useKeys([{ keys: "c", does: "Copy the snippet", run: () => void copyText(chosen.text) }]);
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = snippets.indexOf(chosen);
    const next = snippets[(at + step + snippets.length) % snippets.length] as SnippetFile;
    choose(next.language);
    tabs.current?.querySelectorAll<HTMLElement>("[role=tab]")[snippets.indexOf(next)]?.focus();
  };
  return (
    <div className="snippet">
      <div className="snippet-head">
        <div ref={tabs} className="tabs" role="tablist" aria-label="Language" onKeyDown={move}>
          {snippets.map((s) => (
            <button
              key={s.title}
              type="button"
              role="tab"
              id={`snippet-${s.language}`}
              aria-controls="snippet-text"
              aria-selected={s === chosen}
              tabIndex={s === chosen ? 0 : -1}
              onClick={() => choose(s.language)}
            >
              {s.title}
            </button>
          ))}
        </div>
        <CopyButton text={chosen.text} label="Copy the snippet (C)">
          <span className="wide-only">
            Copy <kbd>C</kbd>
          </span>
        </CopyButton>
      </div>
      <pre id="snippet-text" role="tabpanel" aria-labelledby={`snippet-${chosen.language}`} tabIndex={0}>
        {pieces.map((p, i) =>
          p.ink === "plain" ? (
            p.text
          ) : (
            <span key={i} className={`code-${p.ink}`}>
              {p.text}
            </span>
          ),
        )}
      </pre>
    </div>
  );
}
