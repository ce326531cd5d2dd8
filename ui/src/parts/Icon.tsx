// Line icons on a 16 grid, drawn in the text colour, and the mark.

const PATHS = {
  overview: "M2.5 8h3M10.5 4.5h3M10.5 11.5h3M5.5 8c3 0 2-3.5 5-3.5M5.5 8c3 0 2 3.5 5 3.5",
  traces: "M2 4h7M5 8h6M8 12h6",
  logs: "M2.5 3.5h11M2.5 6.5h8M2.5 9.5h11M2.5 12.5h6",
  metrics: "M2 12.5l3.5-5 3 3 5.5-7",
  services: "M3 3.5h10v3.5H3zM3 9h10v3.5H3z",
  queues: "M3 4v8M6 4v8M9 4v8M12.5 8h2",
  changes: "M3 8h10M8 3v10M5 5l6 6",
  settings: "M2.5 5h6M12 5h1.5M10 3.5v3M2.5 11H5M8.5 11h5M6.7 9.5v3",
  access: "M8 2l5 2v4c0 3-2 5-5 6-3-1-5-3-5-6V4z",
  gateway: "M2 8h9M8 5l3 3-3 3M13.5 3v10",
  search: "M7 3a4 4 0 100 8 4 4 0 000-8zM10 10l3.5 3.5",
  more: "M3 8h.01M8 8h.01M13 8h.01",
  close: "M4 4l8 8M12 4l-8 8",
  down: "M4.5 6.5L8 10l3.5-3.5",
  up: "M4.5 9.5L8 6l3.5 3.5",
  right: "M6.5 4.5L10 8l-3.5 3.5",
  back: "M9.5 4.5L6 8l3.5 3.5",
  sun: "M8 5.2a2.8 2.8 0 100 5.6 2.8 2.8 0 000-5.6zM8 1.5v1.6M8 12.9v1.6M1.5 8h1.6M12.9 8h1.6M3.4 3.4l1.1 1.1M11.5 11.5l1.1 1.1M3.4 12.6l1.1-1.1M11.5 4.5l1.1-1.1",
  copy: "M5.5 5.5h7v7h-7zM3.5 10.5v-7h7",
  done: "M3.5 8.5l3 3 6-7",
  play: "M5 3.5l7 4.5-7 4.5z",
  stop: "M4 4h8v8H4z",
  redo: "M12.5 6.5A5 5 0 104 12M12.5 3v3.5H9",
  link: "M6.5 9.5l3-3M7 5l1.2-1.2a2.5 2.5 0 013.6 3.6L10.5 8.6M9 11l-1.2 1.2a2.5 2.5 0 01-3.6-3.6L5.5 7.4",
  sorted: "M8 3v10M4.5 9.5L8 13l3.5-3.5",
  pause: "M5.5 4v8M10.5 4v8",
  open: "M9 3h4v4M13 3L7.5 8.5M11 9.5V13H3V5h3.5",
  list: "M3 4.5h.01M3 8h.01M3 11.5h.01M6 4.5h7.5M6 8h7.5M6 11.5h7.5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.4"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

/** Three rods in a ring. */
export function Logo({ size = 20 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 20 20" aria-hidden="true">
      <circle cx="10" cy="10" r="8.75" fill="none" stroke="var(--text-1)" strokeWidth="1.5" />
      <rect x="5.6" y="7.6" width="2" height="4.8" rx="1" fill="var(--text-1)" />
      <rect x="9" y="4.8" width="2" height="10.4" rx="1" fill="var(--accent)" />
      <rect x="12.4" y="7.6" width="2" height="4.8" rx="1" fill="var(--text-1)" />
    </svg>
  );
}
