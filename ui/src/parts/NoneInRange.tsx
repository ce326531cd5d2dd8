// No rows match a filter in the page's range: how many are outside it, and the two ways on.

import { tokens, withoutToken } from "../query/tokens";
import { useSetRange } from "../time/useRange";
import { NoMatch } from "./Region";

interface NoneInRangeProps {
  query: string;
  where: string;
  outside: string | null;
  onQuery: (query: string | undefined) => void;
}

export function NoneInRange({ query, where, outside, onQuery }: NoneInRangeProps) {
  const setRange = useSetRange();
  const last = tokens(query).length - 1;
  return (
    <NoMatch where={where} outside={outside}>
      {last >= 0 ? (
        <button type="button" className="link" onClick={() => onQuery(withoutToken(query, last) || undefined)}>
          Clear the last condition
        </button>
      ) : null}
      <button
        type="button"
        className="link"
        onClick={() => setRange({ last: "6h", from: undefined, to: undefined, end: undefined })}
      >
        Widen the range to 6 h
      </button>
    </NoMatch>
  );
}
