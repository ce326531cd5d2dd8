// Just enough colour for a snippet: comments step back, keywords a little, the name to change glows. Pure; six languages.

export type Ink = "plain" | "comment" | "keyword" | "change";
export interface Piece {
  text: string;
  ink: Ink;
}

const KEYWORDS: Record<string, string> = {
  python: "import from def return as with for in if else elif while try except lambda class",
  node: "import from const let await async function return for of if else new export",
  go: "package import func var for range return if else defer go type struct err",
  java: "import class public static void throws var new return if else final package",
  net: "using var await async new return if else class static void record",
  rust: "use fn let mut async await match if else while for in return pub struct impl loop",
};
const ALIASES: Record<string, string> = {
  "node.js": "node",
  javascript: "node",
  ".net": "net",
  "c#": "net",
  csharp: "net",
};

export function paint(text: string, language: string, change: string): Piece[] {
  const name = language.toLowerCase();
  const key = ALIASES[name] ?? name;
  const words = new Set((KEYWORDS[key] ?? "").split(" "));
  const comment = key === "python" ? "#" : "//";
  return text.split("\n").flatMap((line, i, all) => {
    const pieces = paintLine(line, comment, words, change);
    return i < all.length - 1 ? [...pieces, { text: "\n", ink: "plain" as Ink }] : pieces;
  });
}

function paintLine(line: string, comment: string, words: ReadonlySet<string>, change: string): Piece[] {
  const at = commentStart(line, comment);
  const code = at < 0 ? line : line.slice(0, at);
  const out: Piece[] = [];
  const escaped = change.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  for (const text of code.split(new RegExp(`(\\b${escaped}\\b(?:\\.#)?|[A-Za-z_]\\w*)`))) {
    if (text === "") continue;
    const ink: Ink = text === change || text === `${change}.#` ? "change" : words.has(text) ? "keyword" : "plain";
    out.push({ text, ink });
  }
  if (at >= 0) out.push({ text: line.slice(at), ink: "comment" });
  return out;
}

/** The first comment sign outside quotes; `://` in an address is none. */
function commentStart(line: string, sign: string): number {
  let quote: string | null = null;
  for (let i = 0; i < line.length; i += 1) {
    const c = line[i] as string;
    if (quote !== null) {
      if (c === "\\") i += 1;
      else if (c === quote) quote = null;
    } else if (c === '"' || c === "'" || c === "`") quote = c;
    else if (line.startsWith(sign, i) && line[i - 1] !== ":") return i;
  }
  return -1;
}
