// A line small enough for a table cell; gaps stay gaps. The number stands beside it, so it has no axis and no words of its own.

import { memo } from "react";

interface SparkProps {
  values: readonly (number | null)[];
  width?: number;
  height?: number;
}

export const Spark = memo(function Spark({ values, width = 44, height = 14 }: SparkProps) {
  const path = sparkPath(values, width, height);
  return (
    <svg className="spark" width={width} height={height} aria-hidden="true">
      <path
        d={path}
        fill="none"
        stroke="var(--chart-2)"
        strokeWidth="1.1"
        strokeLinejoin="round"
        strokeLinecap="round"
      />
    </svg>
  );
});

function sparkPath(values: readonly (number | null)[], width: number, height: number): string {
  const peak = Math.max(0, ...values.filter((v): v is number => v !== null)) * 1.08;
  const step = width / Math.max(1, values.length - 1);
  let pen = false;
  let path = "";
  values.forEach((v, i) => {
    if (v === null) {
      pen = false;
      return;
    }
    const y = peak > 0 ? height - 1 - (v / peak) * (height - 2) : height - 1;
    const next = values[i + 1];
    path += `${pen ? "L" : "M"}${(i * step).toFixed(1)} ${y.toFixed(1)}`;
    // A single known value is a short dash.
    if (!pen && (next === null || next === undefined)) path += "h.01";
    pen = true;
  });
  return path;
}
