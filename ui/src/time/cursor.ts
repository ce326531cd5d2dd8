// The one time under the pointer, shared by the tape and every chart.

import type { Micros } from "../api/types";
import { Store } from "../live/store";

export const cursor = new Store<Micros | null>(null);
