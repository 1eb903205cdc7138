// Reads a `.scope` file for tests and for the development of the page: the records of its capture.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";




/**
 * Returns the records and the version of a capture file.
 * @param {string} path
 * @returns {{ records: Buffer, version: number }}
 */
export function readScope(path) {
  const file = readFileSync(path);
  const start = file.indexOf(Buffer.from([0x28, 0xb5, 0x2f, 0xfd]));
  const records = execFileSync("zstd", ["-dcq"], { input: file.subarray(start), maxBuffer: 1 << 30 });
  return { records, version: file[start - 1] };
}
