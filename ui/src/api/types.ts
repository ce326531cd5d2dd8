// The JSON that /api/v1 and the live feed speak, as the browser reads it. The server's shapes (src/api) are tested against their
// OpenAPI document, and these against it.

export * from "./types/access";
export * from "./types/broker";
export * from "./types/live";
export * from "./types/messages";
export * from "./types/node";
export * from "./types/services";
export * from "./types/telemetry";
export * from "./types/units";
