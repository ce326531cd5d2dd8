// Policies, users, permissions and spaces.

// ---- GET /api/v1/policies; PUT and DELETE /api/v1/policies/{space}/{name}?operator= ----
export interface PolicyRow {
  space: string;
  name: string;
  pattern: string;
  apply_to: string;
  definition: Record<string, unknown>;
  priority: number;
  operator: boolean;
  queues: number;
  exchanges: number;
}
// ---- GET /api/v1/users; PUT and DELETE /api/v1/users/{name} ----
export interface UserRow {
  name: string;
  tags: string[];
  has_password: boolean;
  max_connections: number | null;
  max_channels: number | null;
  connections: number;
  spaces: string[];
}
// ---- GET /api/v1/permissions; PUT and DELETE /api/v1/permissions/{space}/{user} ----
export interface PermissionRow {
  user: string;
  space: string;
  configure: string;
  write: string;
  read: string;
}
// ---- GET /api/v1/topic-permissions; PUT and DELETE /api/v1/topic-permissions/{space}/{user}?exchange= ----
export interface TopicPermissionRow {
  user: string;
  space: string;
  exchange: string;
  write: string;
  read: string;
}
// ---- GET, PUT and DELETE /api/v1/spaces/{space}; PUT /api/v1/spaces/{space}/limits ----
export interface SpaceRow {
  name: string;
  description: string;
  tags: string[];
  default_queue_type: string | null;
  max_connections: number | null;
  max_queues: number | null;
  queues: number;
  exchanges: number;
  connections: number;
  ready: number;
  unacked: number;
}
