// What tells one connection from another. A client that gives no name is called "peer -> local" by the server.

export function peerOf(name: string): string {
  const [, peer] = /^(\S+:\d+) -> \S+:\d+$/.exec(name) ?? [];
  return peer ?? name;
}
