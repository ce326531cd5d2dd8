// What is typed into the publish form, as the API takes it. Pure.

/** `name: value` a line; a value that is JSON is that, anything else is text. */
export function readHeaders(text: string): { headers: Record<string, unknown>; wrong: string | null } {
  const headers: Record<string, unknown> = {};
  for (const [i, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const at = line.indexOf(":");
    const name = at > 0 ? line.slice(0, at).trim() : "";
    if (name === "") return { headers, wrong: `Line ${i + 1} is not written as name: value` };
    headers[name] = readValue(line.slice(at + 1).trim());
  }
  return { headers, wrong: null };
}
export function readValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export interface Wished {
  content_type: string;
  correlation_id: string;
  reply_to: string;
  message_id: string;
  type: string;
  expiration: string;
  priority: string;
  persistent: boolean;
}
export const NO_PROPERTIES: Wished = {
  content_type: "",
  correlation_id: "",
  reply_to: "",
  message_id: "",
  type: "",
  expiration: "",
  priority: "",
  persistent: true,
};

/** Properties that were given, and what is wrong with a number. */
export function readProperties(wished: Wished) {
  const properties: Record<string, unknown> = { delivery_mode: wished.persistent ? 2 : 1 };
  const wrong: Partial<Record<keyof Wished, string>> = {};
  for (const name of ["content_type", "correlation_id", "reply_to", "message_id", "type"] as const)
    if (wished[name] !== "") properties[name] = wished[name];
  if (wished.expiration !== "") {
    if (/^\d+$/.test(wished.expiration)) properties.expiration = wished.expiration;
    else wrong.expiration = "Whole milliseconds";
  }
  if (wished.priority !== "") {
    const priority = Number(wished.priority);
    if (Number.isInteger(priority) && priority >= 0 && priority <= 255) properties.priority = priority;
    else wrong.priority = "0 to 255";
  }
  return { properties, wrong };
}

/** A whole number of at least 1, or null. */
export function readCount(text: string): number | null {
  const plain = text.replaceAll(",", "").trim();
  const n = Number(plain);
  return plain !== "" && Number.isInteger(n) && n > 0 ? n : null;
}

/** A guess that helps the reader: JSON is declared as such. */
export function typeOf(body: string): string {
  return /^\s*[[{]/.test(body) && typeof readValue(body) === "object" ? "application/json" : "";
}
