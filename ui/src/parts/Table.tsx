// A table of 28 px rows: sorts, holds its order under the pointer, is virtual over 200 rows, moves by j and k.

import {
  type CSSProperties,
  type ReactNode,
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { useKeys } from "../keys/useKeys";
import { type ColumnChoice, compare, holdOrder, nextSort, readColumns, readSort, writeColumns } from "./columns";
import { Icon } from "./Icon";
import { Menu } from "./Menu";

export interface Column<T> {
  id: string;
  head: string;
  /** Right-aligned. */
  num?: boolean;
  /** Pixels; without one the column takes what is left. */
  width?: number;
  cell: (row: T) => ReactNode;
  /** What the column sorts by; without it the head is no button. */
  sort?: (row: T) => number | string | null | undefined;
  title?: (row: T) => string | undefined;
  className?: string;
  /** Only from 1100 px up. */
  broad?: boolean;
  /** Stays on narrow screens, as wide as said there or taking what is left. */
  narrow?: boolean | number | "rest";
  /** Hidden until chosen. */
  optional?: boolean;
}

interface TableProps<T> {
  label: string;
  rows: readonly T[];
  columns: readonly Column<T>[];
  keyOf: (row: T) => string;
  sort?: string | undefined;
  onSort?: (sort: string | undefined) => void;
  cols?: string | undefined;
  onCols?: (cols: string | undefined) => void;
  /** Rows that stand under another, indented by the first cell; they move with it. */
  childrenOf?: (row: T) => readonly T[];
  selected?: string | null | undefined;
  onOpen?: (row: T) => void;
  rowClass?: (row: T) => string | undefined;
  /** Height of the whole list follows its rows instead of scrolling inside. */
  grows?: boolean;
  className?: string;
  /** `rows` are a stretch of a longer list that is sorted elsewhere: row `from` of `total` and those after it. */
  stretch?: Stretch | undefined;
}

export interface Stretch {
  from: number;
  total: number;
  /** The rows on the screen: those that are missing should be fetched. */
  want: (from: number, to: number) => void;
  /** The pointer is over the rows: their order must hold. */
  hold: (on: boolean) => void;
}

const ROW_PX = 28;
const VIRTUAL_FROM = 200;
const OVERSCAN = 12;

export function Table<T>(props: TableProps<T>) {
  const { columns, keyOf, childrenOf, stretch, grows = false } = props;
  const [frozen, setFrozen] = useState(false);
  const freeze = (on: boolean) => {
    setFrozen(on);
    stretch?.hold(on);
  };
  const order = useOrder(props, frozen);
  const flat = useMemo(
    () => (childrenOf ? order.flatMap((row) => [row, ...childrenOf(row)]) : order),
    [order, childrenOf],
  );
  const choice = useMemo(() => readColumns(props.cols), [props.cols]);
  const shown = columns.filter((c) => (c.optional ? choice.shown.has(c.id) : !choice.hidden.has(c.id)));
  const scroller = useRef<HTMLDivElement>(null);
  const total = stretch?.total ?? flat.length;
  const start = stretch?.from ?? 0;
  const view = useWindow(scroller, total, grows);
  useRowKeys(scroller, total);
  const want = stretch?.want;
  useEffect(() => want?.(view.from, view.to), [want, view.from, view.to]);
  return (
    <div
      className={grows ? "" : "table-scroll"}
      data-scroll-restoration-id={grows ? undefined : props.label}
      ref={scroller}
      onScroll={view.onScroll}
    >
      <table
        className={`table ${props.className ?? ""}`}
        aria-label={props.label}
        aria-rowcount={view.virtual ? total + 1 : undefined}
      >
        <colgroup>
          {shown.map((c) => (
            <col key={c.id} className={shownFrom(c)} style={columnWidth(c, choice)} />
          ))}
        </colgroup>
        <thead>
          <tr>
            {shown.map((c) => (
              <Head key={c.id} column={c as Column<unknown>} frozen={frozen} choice={choice} {...props} />
            ))}
          </tr>
        </thead>
        <tbody onPointerEnter={() => freeze(true)} onPointerLeave={() => freeze(false)}>
          {view.from > 0 ? <Spacer rows={view.from} /> : null}
          {Array.from({ length: Math.max(0, view.to - view.from) }, (_, i) => {
            const index = view.from + i;
            const row = flat[index - start];
            if (row === undefined) return <Missing key={`missing ${index}`} />;
            return (
              <Row
                key={keyOf(row)}
                row={row}
                index={index}
                virtual={view.virtual}
                columns={shown}
                {...pick(props, row)}
              />
            );
          })}
          {view.to < total ? <Spacer rows={total - view.to} /> : null}
        </tbody>
      </table>
    </div>
  );
}

function pick<T>(props: TableProps<T>, row: T) {
  return {
    selected: props.selected === props.keyOf(row),
    className: props.rowClass?.(row),
    onOpen: props.onOpen,
  };
}

function columnWidth<T>(c: Column<T>, choice: ColumnChoice): CSSProperties {
  const width = choice.widths.get(c.id) ?? c.width;
  const narrow = typeof c.narrow === "number" ? `${c.narrow}px` : c.narrow === "rest" ? "auto" : undefined;
  return { "--col": width ? `${width}px` : "auto", "--col-narrow": narrow } as CSSProperties;
}

function useOrder<T>({ rows, columns, keyOf, sort, stretch }: TableProps<T>, frozen: boolean): readonly T[] {
  const held = useRef<{ sort: string | undefined; keys: string[] }>({ sort, keys: [] });
  const sorted = stretch !== undefined;
  const order = useMemo(() => {
    if (sorted) return rows;
    const by = readSort(sort);
    const value = by ? columns.find((c) => c.id === by.id)?.sort : undefined;
    if (!by || !value) return [...rows];
    return [...rows].sort((a, b) => compare(value(a), value(b), by.down));
  }, [rows, columns, sort, sorted]);
  if (sorted) return order;
  const shown = frozen && held.current.sort === sort ? holdOrder(order, keyOf, held.current.keys) : order;
  held.current = { sort, keys: shown.map(keyOf) };
  return shown;
}

interface View {
  from: number;
  to: number;
  virtual: boolean;
  onScroll: (() => void) | undefined;
}

function useWindow(scroller: React.RefObject<HTMLDivElement | null>, total: number, grows: boolean): View {
  const virtual = total > VIRTUAL_FROM && !grows;
  const [first, setFirst] = useState(0);
  const [height, setHeight] = useState(600);
  useLayoutEffect(() => {
    const node = scroller.current;
    if (!virtual || !node) return;
    const observer = new ResizeObserver(() => setHeight(node.clientHeight));
    observer.observe(node);
    return () => observer.disconnect();
  }, [virtual, scroller]);
  const onScroll = useCallback(() => {
    const top = scroller.current?.scrollTop ?? 0;
    // In steps of half the overscan: scrolling a few rows renders nothing.
    setFirst(Math.floor(top / ROW_PX / (OVERSCAN / 2)) * (OVERSCAN / 2));
  }, [scroller]);
  if (!virtual) return { from: 0, to: total, virtual, onScroll: undefined };
  const from = Math.max(0, Math.min(first - OVERSCAN, total - 1));
  return { from, to: Math.min(total, first + Math.ceil(height / ROW_PX) + OVERSCAN), virtual, onScroll };
}

/** j and k move the focus through the rows from anywhere on the page; the arrows do once a row has it. */
function useRowKeys(scroller: React.RefObject<HTMLDivElement | null>, total: number): void {
  const move = (step: number) => {
    const node = scroller.current;
    if (!node || total === 0) return;
    const rows = [...node.querySelectorAll<HTMLElement>("tbody tr[tabindex]")];
    const at = rows.findIndex((row) => row === document.activeElement || row.contains(document.activeElement));
    const selected = rows.findIndex((row) => row.classList.contains("selected"));
    const next = at < 0 ? (selected >= 0 ? selected + step : step > 0 ? 0 : rows.length - 1) : at + step;
    const row = rows[Math.min(rows.length - 1, Math.max(0, next))];
    row?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: "nearest" });
  };
  useKeys([
    { keys: "j", does: "Next row", run: () => move(1) },
    { keys: "k", does: "Previous row", run: () => move(-1) },
    { keys: "ArrowDown", does: "Next row", silent: true, run: () => move(1) },
    { keys: "ArrowUp", does: "Previous row", silent: true, run: () => move(-1) },
  ]);
}

interface RowProps<T> {
  row: T;
  index: number;
  virtual: boolean;
  columns: readonly Column<T>[];
  selected: boolean;
  className: string | undefined;
  onOpen: ((row: T) => void) | undefined;
}

function Row<T>({ row, index, virtual, columns, selected, className, onOpen }: RowProps<T>) {
  const classes = [className, selected ? "selected" : "", onOpen ? "openable" : ""].filter(Boolean).join(" ");
  return (
    <tr
      className={classes || undefined}
      aria-rowindex={virtual ? index + 2 : undefined}
      aria-current={selected || undefined}
      tabIndex={selected || index === 0 ? 0 : -1}
      onClick={(event) => {
        if ((event.target as HTMLElement).closest("a, button")) return;
        onOpen?.(row);
      }}
      onKeyDown={(event) => {
        if (event.key !== "Enter" || event.target !== event.currentTarget || !onOpen) return;
        event.preventDefault();
        onOpen(row);
      }}
    >
      {columns.map((c) => (
        <td key={c.id} className={cellClass(c)} title={c.title?.(row)}>
          {c.cell(row)}
        </td>
      ))}
    </tr>
  );
}

function cellClass<T>(c: Column<T>): string | undefined {
  return [c.num ? "num" : "", shownFrom(c), c.className ?? ""].filter(Boolean).join(" ") || undefined;
}
const shownFrom = <T,>(c: Column<T>): string | undefined =>
  c.broad ? "broad-only" : c.narrow ? undefined : "wide-only";

/** A row that is on its way. */
function Missing() {
  return (
    <tr className="missing" aria-hidden="true">
      <td>
        <i />
      </td>
    </tr>
  );
}

/** One cell: a span over columns that a narrow screen hides would make them anew. */
function Spacer({ rows }: { rows: number }) {
  return (
    <tr className="spacer" aria-hidden="true">
      <td style={{ height: rows * ROW_PX }} />
    </tr>
  );
}

interface HeadProps {
  column: Column<unknown>;
  frozen: boolean;
  choice: ColumnChoice;
  sort?: string | undefined;
  onSort?: (sort: string | undefined) => void;
  onCols?: (cols: string | undefined) => void;
}

function Head({ column, frozen, choice, sort, onSort, onCols }: HeadProps) {
  const by = readSort(sort);
  const on = by?.id === column.id;
  const sorted = on ? (by.down ? "descending" : "ascending") : undefined;
  const sortable = column.sort && onSort;
  return (
    <th scope="col" className={cellClass(column)} aria-sort={sorted}>
      {sortable ? (
        <button type="button" onClick={() => onSort(nextSort(by, column.id, column.num ?? false))}>
          {column.head || <span className="hidden">{column.id}</span>}
          {on ? <SortMark down={by.down} frozen={frozen} /> : null}
        </button>
      ) : (
        column.head || <span className="hidden">{column.id}</span>
      )}
      {onCols ? <ColumnGrip id={column.id} choice={choice} onCols={onCols} /> : null}
    </th>
  );
}

/** While the order is held the arrow is a pause sign. */
function SortMark({ down, frozen }: { down: boolean; frozen: boolean }) {
  if (frozen) return <Icon name="pause" size={10} />;
  return (
    <span className={down ? undefined : "flip"} aria-hidden="true">
      <Icon name={down ? "down" : "up"} size={10} />
    </span>
  );
}

function ColumnGrip({
  id,
  choice,
  onCols,
}: {
  id: string;
  choice: ColumnChoice;
  onCols: (cols: string | undefined) => void;
}) {
  const start = useRef<{ x: number; width: number } | null>(null);
  return (
    <span
      className="col-grip"
      aria-hidden="true"
      onPointerDown={(event) => {
        const th = event.currentTarget.closest("th") as HTMLElement;
        start.current = { x: event.clientX, width: th.offsetWidth };
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        if (!start.current) return;
        const width = Math.max(36, start.current.width + event.clientX - start.current.x);
        onCols(writeColumns({ ...choice, widths: new Map(choice.widths).set(id, width) }));
      }}
      onPointerUp={() => {
        start.current = null;
      }}
    />
  );
}

interface ColumnsMenuProps {
  columns: readonly Pick<Column<never>, "id" | "head" | "optional">[];
  cols: string | undefined;
  onCols: (cols: string | undefined) => void;
}

/** Which columns a view shows. */
export function ColumnsMenu({ columns, cols, onCols }: ColumnsMenuProps) {
  const choice = readColumns(cols);
  const flip = (id: string, optional: boolean) => {
    const hidden = new Set(choice.hidden);
    const shown = new Set(choice.shown);
    const set = optional ? shown : hidden;
    if (set.has(id)) set.delete(id);
    else set.add(id);
    onCols(writeColumns({ hidden, shown, widths: choice.widths }));
  };
  return (
    <Menu
      label="Columns"
      align="right"
      button="Columns"
      items={columns.map((c) => ({
        label: c.head || c.id,
        on: c.optional ? choice.shown.has(c.id) : !choice.hidden.has(c.id),
        stays: true,
        run: () => flip(c.id, c.optional ?? false),
      }))}
    />
  );
}
