// Reads the captures inside pages, for tests.

import { readFileSync } from "node:fs";
import { inflateSync } from "node:zlib";

/** Pages whose paths are in PAGES, separated by colons. */
export const PAGES = (process.env.PAGES ?? "").split(":").filter((path) => path !== "");
if (PAGES.length === 0) throw new Error("PAGES is empty: give the paths of pages, separated by colons");

/** The program that reads the same pages. */
export const PROGRAM = process.env.SYSTEMSCOPE ?? "systemscope";

/**
 * Returns the records of the capture in a page.
 * @param {string} path
 * @returns {Buffer}
 */
export function readRecords(path) {
  const block = /id="capture" data-version="\d+">([^<]*)</.exec(readFileSync(path, "latin1"));
  if (!block) throw new Error(`${path} has no capture`);
  return inflateSync(Buffer.from(block[1], "base64"));
}
