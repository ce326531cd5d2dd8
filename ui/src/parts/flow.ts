// Where the lines of a small left-to-right graph run: from each thing at a side to the one in the middle, orthogonal with rounded
// corners. Pure.

export const FLOW_ROW = 30;
export const FLOW_NODE = 24;
const CORNER = 8;

/** The vertical middle of row `i` of a column of `n`, centred in `height`. */
export const rowMiddle = (i: number, n: number, height: number): number =>
  (height - n * FLOW_ROW) / 2 + i * FLOW_ROW + FLOW_ROW / 2;

export const flowHeight = (left: number, right: number): number => Math.max(left, right, 1) * FLOW_ROW + 12;

/** From `(x1, y1)` along to `trunk`, up or down it, and along to `(x2, y2)`. */
export function elbow(x1: number, y1: number, trunk: number, x2: number, y2: number): string {
  const dy = y2 - y1;
  if (Math.abs(dy) < 0.5) return `M${x1} ${y1}H${x2}`;
  const way = x2 > x1 ? 1 : -1;
  const r = Math.min(CORNER, Math.abs(dy) / 2, Math.abs(trunk - x1), Math.abs(x2 - trunk));
  const turn = dy > 0 ? 1 : -1;
  return [
    `M${x1} ${y1}`,
    `H${trunk - way * r}`,
    `Q${trunk} ${y1} ${trunk} ${y1 + turn * r}`,
    `V${y2 - turn * r}`,
    `Q${trunk} ${y2} ${trunk + way * r} ${y2}`,
    `H${x2}`,
  ].join("");
}
