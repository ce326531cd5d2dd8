// Round maxima for value axes: three labels, at zero, half and the top, all round.

const MANTISSAS = [1, 1.2, 1.5, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10];

/** The smallest round number not below `v` whose half is round too. */
export function niceMax(v: number, options: { base1024?: boolean; whole?: boolean } = {}): number {
  if (!(v > 0)) return options.whole ? 2 : 1;
  const unit = options.base1024 ? 1024 ** Math.floor(Math.log(v) / Math.log(1024)) : 1;
  const inUnit = v / unit;
  const power = 10 ** Math.floor(Math.log10(inUnit));
  const mantissa = MANTISSAS.find((m) => m * power >= inUnit * 0.999999) ?? 10;
  const nice = Number((mantissa * power).toPrecision(6)) * unit;
  return options.whole ? Math.max(2, Math.ceil(nice / 2) * 2) : nice;
}
