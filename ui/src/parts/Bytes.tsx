import type { Tone } from "../api/types";
import * as f from "./format";
import { toneClass, Unknown } from "./Num";

export function Bytes({
  value,
  tone = "normal",
  why,
}: {
  value: number | null | undefined;
  tone?: Tone | undefined;
  why?: string;
}) {
  if (value === null || value === undefined) return <Unknown why={why} />;
  return <span className={toneClass(tone)}>{f.bytes(value)}</span>;
}
