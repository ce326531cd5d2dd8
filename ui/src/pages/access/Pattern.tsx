import { MiddleCut } from "../../parts/MiddleCut";

/** A regular expression of a permission, in words where it is all or nothing. */
export function Pattern({ text }: { text: string }) {
  if (text === "") return <span className="meta">nothing</span>;
  return text === ".*" ? "everything" : <MiddleCut text={text} />;
}
