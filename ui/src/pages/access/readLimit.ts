/** A limit as it is written: a whole number, or nothing for none (null). Undefined where it is neither. */
export function readLimit(text: string): number | null | undefined {
  const written = text.trim();
  if (written === "") return null;
  const n = Number(written);
  return /^\d+$/.test(written) && Number.isSafeInteger(n) ? n : undefined;
}
