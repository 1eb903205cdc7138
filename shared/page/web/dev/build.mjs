// Makes a page from a capture for the development of the page: node dev/build.mjs x.scope out.html [before.scope].
// The first screen is a stand-in; the program writes the real one.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { deflateSync } from "node:zlib";
import { readScope } from "./read.mjs";

const WEB = new URL("../", import.meta.url);
const MODULES = [
  "dom", "format", "proto", "tree", "data", "selection", "search", "state", "chips", "menu", "flame",
  "table", "wakers", "lanes", "compare", "summary", "main",
];

/** @param {string} name */
const source = (name) => readFileSync(new URL(name, WEB), "utf8");
/** Leaves out comments that have lines of their own. @param {string} text */
const withoutComments = (text) => {
  const lines = [];
  let isComment = false;
  for (const line of text.split("\n")) {
    const start = line.trimStart();
    const isStart = start.startsWith("/**") && (start.endsWith("*/") || !start.includes("*/"));
    if (!isComment && !isStart && !start.startsWith("//") && start !== "") lines.push(line);
    isComment = (isComment || isStart) && !start.includes("*/");
  }
  return `${lines.join("\n")}\n`;
};
const script = MODULES.map((name) => withoutComments(source(`${name}.js`).replace(/^import [^;]*;\n/gm, "").replace(/^export /gm, ""))).join("");
/** Names that modules declare at their top; one script cannot have two of a name. */
const declared = new Map();
for (const [, name] of script.matchAll(/^(?:async )?(?:function\*?|const|let|class) ([\w$]+)/gm)) {
  if (declared.has(name)) throw new Error(`two modules declare ${name}`);
  declared.set(name, true);
}
const style = source("page.css") + source("views.css");
/** @param {string} text */
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'`;
/** @param {string} id @param {string} path */
const block = (id, path) => {
  const { records, version } = readScope(path);
  return `<script type="application/octet-stream" id="${id}" data-version="${version}">${deflateSync(records).toString("base64")}</script>`;
};
const [, , capture, out, before] = process.argv;
writeFileSync(out, `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>systemscope</title><style>${style}</style></head>
<body><main id="summary"><h1>First screen</h1><p>The program writes it.</p></main>
<p id="trouble" role="alert">The views open when the page is loaded.</p><div id="app" hidden></div>
${before === undefined ? "" : block("before", before)}${block("capture", capture)}
<script type="module">${script}</script></body></html>
`);
console.log(`script ${script.length} bytes, style ${style.length} bytes`);
