import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const COMPRESSED = /\.(js|css|html|svg|json|txt)$/;

/** Every text file also as .gz and .br, so that the server sends bytes it never has to compress. */
function precompress(): Plugin {
  let out = "dist";
  return {
    name: "precompress",
    apply: "build",
    configResolved(config) {
      out = join(config.root, config.build.outDir);
      if (config.build.outDir.startsWith("/")) out = config.build.outDir;
    },
    async closeBundle() {
      if (!existsSync(out)) return;
      const params = { [constants.BROTLI_PARAM_QUALITY]: 11 };
      const names = readdirSync(out, { recursive: true, encoding: "utf8" }).filter((name) => COMPRESSED.test(name));
      await Promise.all(
        names.map(async (name) => {
          const path = join(out, name);
          if (!statSync(path).isFile()) return;
          const bytes = readFileSync(path);
          await writeFile(`${path}.gz`, await promisify(gzip)(bytes, { level: 9 }));
          await writeFile(`${path}.br`, await promisify(brotliCompress)(bytes, { params }));
        }),
      );
    },
  };
}

const api = process.env.REACTOR_API ?? "http://127.0.0.1:15000";

export default defineConfig({
  plugins: [react(), precompress()],
  build: {
    target: "es2023",
    emptyOutDir: true,
    // Data URIs would need a wider content policy than 'self'.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 900,
    // Compressing takes longer than bundling; that is known.
    rolldownOptions: { checks: { pluginTimings: false } },
  },
  worker: { format: "es" },
  server: {
    port: 5173,
    // The Host stays as the browser wrote it: the control port refuses requests whose Origin is another than their Host.
    proxy: { "/api": { target: api, ws: true, changeOrigin: false }, "/healthz": api },
  },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
} as Parameters<typeof defineConfig>[0]);
