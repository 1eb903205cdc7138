// Compares decoded captures with what `systemscope export --format json` says of them: the time of
// each thread, state, wait and stack. PAGES has the paths of pages, SYSTEMSCOPE the program.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { decodeCapture, stackNames } from "../data.js";
import { IDLENESS_NAMES, REASON_NAMES, STATE_NAMES } from "../format.js";
import { initialState, select } from "../selection.js";
import { PAGES, PROGRAM, readRecords } from "./read.mjs";


/** @param {[string, number][]} rows */
function sumByKey(rows) {
  /** @type {Map<string, number>} */
  const sums = new Map();
  for (const [key, value] of rows) sums.set(key, (sums.get(key) ?? 0) + value);
  return new Map([...sums].sort());
}

test("decoded captures agree with the JSON of the program", () => {
  for (const path of PAGES) {
    const data = decodeCapture(readRecords(path));
    const json = JSON.parse(execFileSync(PROGRAM, ["export", path, "--format", "json"], { maxBuffer: 1 << 30, encoding: "utf8" }));
    const isTime = json.unit === "nanoseconds";
    const each = isTime ? 1 : (json.meta.sampling?.ns_per_sample ?? json.meta.sampling?.period ?? 1);
    const { samples, waits } = data;
    /** @type {[string, number][]} */
    const ours = [];
    for (let row = 0; row < samples.measured; row++) {
      const { pid, tid } = data.threads[samples.thread[row]];
      const wait = samples.wait[row];
      const resource = wait < 0 || waits.resource[wait] < 0 ? "" : data.resources[waits.resource[wait]];
      const about = wait < 0 ? "" : [REASON_NAMES[waits.reason[wait]], data.names[waits.detail[wait]], resource, IDLENESS_NAMES[waits.idleness[wait]]].join("|");
      ours.push([[pid, tid, STATE_NAMES[samples.state[row]], about, ...stackNames(data, samples.node[row])].join(";"), samples.value[row]]);
    }
    /** @type {[string, number][]} */
    const theirs = json.samples.map((/** @type {any} */ sample) => {
      const labels = sample.labels ?? {};
      const about = labels.reason === undefined ? "" : [labels.reason, labels.detail, labels.object ?? "", labels.idleness].join("|");
      const names = [...sample.user, ...sample.kernel].map((frame) => json.frames[frame].name || "[unknown]");
      return [[sample.pid ?? 0, sample.tid ?? 0, sample.state ?? (isTime ? "unknown" : "running"), about, ...names].join(";"), sample.value * each];
    });
    assert.deepEqual(sumByKey(ours), sumByKey(theirs), path);
    const busy = json.samples.filter((/** @type {any} */ sample) => !["idle", "dormant"].includes(sample.labels?.idleness));
    assert.equal(select(data, initialState()).shown, busy.reduce((/** @type {number} */ sum, /** @type {any} */ sample) => sum + sample.value * each, 0), path);
  }
});
