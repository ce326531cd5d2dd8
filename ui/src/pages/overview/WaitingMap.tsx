// The map before there is one: callers, the gateway, and the dashed slot that waits.

import type { Service } from "../../api/types";
import { plural } from "../../parts/format";
import { slotColour } from "../../parts/marks";

const RODS = 24;

export function WaitingMap({ gateway, name }: { gateway: Service | undefined; name: string }) {
  const routes = gateway ? `${gateway.state}, ${plural(0, "route")}` : "";
  return (
    <svg
      className="waiting"
      viewBox="0 0 760 132"
      preserveAspectRatio="xMinYMid"
      role="img"
      aria-label="Callers reach the gateway; your service will appear here"
    >
      <g fill="none" stroke="var(--line-2)" strokeWidth="1.5">
        <path d="M104 66H162" />
        <path d="M308 66H366" strokeDasharray="3 4" />
        <path d="M530 66H588" strokeDasharray="3 4" />
      </g>
      <rect x="0.5" y="42" width="104" height="48" rx="24" fill="none" stroke="var(--line-2)" strokeDasharray="3 3" />
      <text x="18" y="62" fontSize="12" fontWeight="500" fill="var(--text-2)">
        you
      </text>
      <text x="18" y="79" fontSize="11" fill="var(--text-3)">
        curl, browser
      </text>
      <rect x="162" y="42" width="146" height="48" rx="6" fill="var(--bg-1)" stroke="var(--line-2)" />
      <rect x="170" y="51" width="3" height="12" rx="1" fill={slotColour(1)} />
      <text x="180" y="61.5" fontSize="13" fontWeight="600" fill="var(--text-1)">
        gateway
      </text>
      <rect x="291" y="51" width="3" height="11" rx="1" fill="var(--ok)" />
      <text x="170" y="80" fontSize="11" fill="var(--text-3)">
        {routes}
      </text>
      <rect
        className="waiting-slot"
        x="366"
        y="38"
        width="164"
        height="56"
        rx="6"
        fill="var(--accent-soft)"
        stroke="var(--accent)"
        strokeDasharray="4 4"
      />
      <text x="382" y="62" fontSize="13" fontWeight="600" fill="var(--text-1)">
        {name}
      </text>
      <text x="382" y="80" fontSize="11" fill="var(--accent)">
        waiting for it to attach
      </text>
      <path d="M590 58v16M738 58v16" stroke="var(--line-3)" strokeWidth="1.5" strokeLinecap="round" />
      {Array.from({ length: RODS }, (_, i) => (
        <rect key={i} x={598 + i * 5.6} y="60" width="3.6" height="12" rx="1" fill="var(--line-1)" />
      ))}
      <text className="mono" x="598" y="51" fontSize="11.5" fill="var(--text-3)">
        your queues
      </text>
    </svg>
  );
}
