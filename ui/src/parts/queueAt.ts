// Where a happening's line names its queue: after what kind of thing changed, after a binding's source, or first of all.

export function queueAt(line: string, queue: string): number | null {
  const at = line.startsWith("queue ") ? 6 : line.startsWith("binding ") ? line.indexOf(" > ") + 3 : 0;
  return line.startsWith(queue, at) ? at : null;
}
