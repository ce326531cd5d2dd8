// Readers for search parameters: whatever the URL holds, a page gets a value of the right kind or none.

export const text = (raw: unknown): string | undefined => {
  if (typeof raw === "string") return raw === "" ? undefined : raw;
  return typeof raw === "number" || typeof raw === "boolean" ? String(raw) : undefined;
};
export const amount = (raw: unknown): number | undefined => {
  const n = typeof raw === "string" && raw !== "" ? Number(raw) : raw;
  return typeof n === "number" && Number.isFinite(n) ? n : undefined;
};
export const yes = (raw: unknown): true | undefined => (raw === true || raw === "true" || raw === 1 ? true : undefined);
export const oneOf = <T extends string>(raw: unknown, values: readonly T[]): T | undefined =>
  values.find((value) => value === raw);
