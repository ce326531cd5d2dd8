// Fails when the built dashboard outgrows its budget: what the first page loads, and everything embedded in the binary.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const INITIAL_MAX = 300 * 1024;
const TOTAL_MAX = 1.2 * 1024 * 1024;
const dist = process.argv[2] ?? "dist";

const size = (path) =>
  path.endsWith(".woff2") ? statSync(path).size : gzipSync(readFileSync(path), { level: 9 }).length;
const html = readFileSync(join(dist, "index.html"), "utf8");
const first = [...html.matchAll(/(?:src|href)="\/([^"]+\.js)"/g)].map((m) => join(dist, m[1]));
const initial = first.reduce((sum, path) => sum + size(path), 0);
const files = readdirSync(dist, { recursive: true, encoding: "utf8" })
  .map((name) => join(dist, name))
  .filter((path) => statSync(path).isFile() && !/\.(gz|br)$/.test(path));
const total = files.reduce((sum, path) => sum + size(path), 0);

const kib = (n) => `${(n / 1024).toFixed(1)} KiB`;
console.log(`first page JavaScript  ${kib(initial)} gzip of ${kib(INITIAL_MAX)}`);
console.log(`everything             ${kib(total)} gzip of ${kib(TOTAL_MAX)}, ${files.length} files`);
if (initial > INITIAL_MAX || total > TOTAL_MAX) {
  console.error("The dashboard is over its size budget: split a page off, or drop a dependency.");
  process.exit(1);
}
