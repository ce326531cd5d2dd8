// The words of a filter as the server reads them: free text, `field:value`, comparisons, `-` before any of them. Only split and
// joined here; what they mean is the server's.

export interface Token {
  text: string;
  from: number;
  to: number;
  negated: boolean;
  /** Null for free text. */
  field: string | null;
  op: ":" | ">=" | "<=" | ">" | "<" | null;
  value: string;
}

const FIELD = /^(-?)([A-Za-z_@][\w.@/-]*)(>=|<=|:|>|<)(.*)$/s;

/** Splits at spaces outside quotes and outside `/…/`. */
export function tokens(query: string): Token[] {
  const out: Token[] = [];
  let i = 0;
  while (i < query.length) {
    while (i < query.length && query[i] === " ") i += 1;
    if (i >= query.length) break;
    const from = i;
    let closing: string | null = null;
    while (i < query.length && (closing !== null || query[i] !== " ")) {
      const c = query[i] as string;
      const before = query[i - 1];
      if (closing === null) {
        if (c === '"') closing = '"';
        else if (c === "/" && (i === from || before === "-" || before === ":")) closing = "/";
      } else if (c === closing && before !== "\\") closing = null;
      i += 1;
    }
    out.push(token(query.slice(from, i), from, i));
  }
  return out;
}

function token(text: string, from: number, to: number): Token {
  const m = FIELD.exec(text);
  if (!m) {
    const negated = text.startsWith("-") && text.length > 1;
    return { text, from, to, negated, field: null, op: null, value: unquote(negated ? text.slice(1) : text) };
  }
  return {
    text,
    from,
    to,
    negated: m[1] === "-",
    field: m[2] as string,
    op: m[3] as Token["op"],
    value: unquote(m[4] as string),
  };
}

const unquote = (text: string): string =>
  text.length >= 2 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1).replace(/\\(["\\])/g, "$1") : text;

export const quote = (value: string): string =>
  value === "" || /[\s"]/.test(value) ? `"${value.replace(/(["\\])/g, "\\$1")}"` : value;

/** A token whose value is there: it stands as a chip. */
export const isChip = (t: Token): boolean => t.field !== null && t.value !== "";

export const term = (field: string, value: string, negated = false): string =>
  `${negated ? "-" : ""}${field}:${quote(value)}`;

/** Adds a condition; its opposite, or the same field with another value, gives way. */
export function withTerm(query: string, field: string, value: string, negated = false): string {
  const kept = tokens(query).filter((t) => t.field !== field || t.op !== ":" || (negated && t.negated));
  const next = term(field, value, negated);
  return [...kept.map((t) => t.text).filter((text) => text !== next), next].join(" ");
}

export function withoutToken(query: string, index: number): string {
  return tokens(query)
    .filter((_, i) => i !== index)
    .map((t) => t.text)
    .join(" ");
}
