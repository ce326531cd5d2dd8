// What the lists of permissions and of topic permissions share: the same columns stand at the same places in both.

import { MiddleCut } from "../../parts/MiddleCut";
import type { Column } from "../../parts/Table";
import { Pattern } from "./Pattern";

interface Grant {
  user: string;
  space: string;
  write: string;
  read: string;
}

/** Of what a user may reach: a queue's or exchange's pattern, an exchange. */
export const MIDDLE_WIDTH = 220;
export const NARROW_WIDTH = 90;

export const user: Column<Grant> = {
  id: "user",
  head: "User",
  width: 200,
  narrow: "rest",
  sort: (p) => p.user,
  cell: (p) => <MiddleCut text={p.user} />,
};
export const space: Column<Grant> = {
  id: "space",
  head: "Space",
  width: 160,
  sort: (p) => p.space,
  cell: (p) => <MiddleCut text={p.space} />,
};
export const write: Column<Grant> = {
  id: "write",
  head: "Write",
  narrow: NARROW_WIDTH,
  cell: (p) => <Pattern text={p.write} />,
};
export const read: Column<Grant> = {
  id: "read",
  head: "Read",
  narrow: NARROW_WIDTH,
  cell: (p) => <Pattern text={p.read} />,
};
