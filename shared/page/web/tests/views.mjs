// Compares what the views show of real captures with the program: the table with each kind of
// filter with the program's JSON, lanes with the threads' clocks, and changes with
// `systemscope diff`. PAGES has the paths of pages, SYSTEMSCOPE the program.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { test } from "node:test";
import { findChanges, whyNotComparable } from "../compare.js";
import { decodeCapture } from "../data.js";
import { STATE_NAMES } from "../format.js";
import { laneColumns, sumLanes } from "../lanes.js";
import { initialState, select } from "../selection.js";
import { functionTotals } from "../table.js";
import { blockedSamples, divideFacet, wakerGraph } from "../wakers.js";
import { PAGES, PROGRAM, readRecords } from "./read.mjs";

const KINDS = ["unknown", "user", "kernel", "marker", "python", "interpreted"];

/** @param {Map<string, number>} sums @param {string} key @param {number} value */
function add(sums, key, value) {
  if (value !== 0) sums.set(key, (sums.get(key) ?? 0) + value);
}

/** @param {any} json @param {any} sample @param {any} state @param {any} thread */
function isShown(json, sample, state, thread) {
  const names = [...sample.user, ...sample.kernel].map((frame) => json.frames[frame].name || "[unknown]");
  const { reason = "unknown", idleness } = sample.labels ?? {};
  if (state.idle === "hide" && ["idle", "dormant"].includes(idleness)) return false;
  if (state.threads.length > 0 && (sample.pid !== thread.pid || sample.tid !== thread.tid)) return false;
  if (state.states.length > 0 && !state.states.includes(sample.state ?? "unknown")) return false;
  if (state.reasons.length > 0 && sample.state === "blocked" && !state.reasons.includes(reason)) return false;
  if (state.pivot !== "" && !names.includes(state.pivot)) return false;
  return state.filters.every((/** @type {any} */ { kind, name }) => kind === "hide" || names.includes(name) === (kind === "only"));
}

test("the table has the program's sums with each kind of filter", () => {
  for (const path of PAGES) {
    const data = decodeCapture(readRecords(path));
    const json = JSON.parse(execFileSync(PROGRAM, ["export", path, "--format", "json"], { maxBuffer: 2 ** 30, encoding: "utf8" }));
    if (json.unit !== "nanoseconds") continue;
    const { names, count, kinds } = data.functions;
    const thread = data.threads[Math.floor(data.threads.length / 2)];
    const [one, other] = [names[Math.floor(count / 2)], names[Math.floor(count / 3)]];
    for (const change of [
      {}, { idle: "show" }, { threads: [thread.key] }, { states: ["running", "blocked"], idle: "show" }, { reasons: ["lock", "events"], idle: "show" },
      { filters: [{ kind: "only", name: one }] }, { filters: [{ kind: "without", name: other }], idle: "show" }, { pivot: one, idle: "show" },
      { filters: [{ kind: "hide", name: one }], idle: "show" },
    ]) {
      const state = { ...initialState(), ...change };
      const selected = select(data, state);
      const totals = functionTotals(selected);
      const [ours, theirs] = [new Map(), new Map()];
      for (let fn = 0; fn < count; fn++) {
        for (let s = 0; s < 4; s++) {
          const key = `${names[fn]}\n${KINDS[kinds[fn]]}\n${STATE_NAMES[s]}`;
          add(ours, `total ${key}`, totals.total[fn * 4 + s]);
          add(ours, `self ${key}`, totals.self[fn * 4 + s]);
        }
      }
      const hidden = state.filters.find(({ kind }) => kind === "hide")?.name;
      for (const sample of json.samples.filter((/** @type {any} */ it) => isShown(json, it, state, thread))) {
        const frames = [...sample.user, ...sample.kernel].map((frame) => ({ ...json.frames[frame], name: json.frames[frame].name || "[unknown]" }));
        const keys = frames.filter(({ name }) => name !== hidden).map(({ name, kind }) => `${name}\n${kind}\n${sample.state ?? "unknown"}`);
        for (const key of new Set(keys)) add(theirs, `total ${key}`, sample.value);
        if (keys.length > 0) add(theirs, `self ${keys[keys.length - 1]}`, sample.value);
      }
      assert.deepEqual(new Map([...ours].sort()), new Map([...theirs].sort()), `${path} ${JSON.stringify(change)}`);
      assert.equal(selected.shown + selected.hidden, selected.whole);
      const blocked = blockedSamples(selected);
      const waits = divideFacet(selected, blocked, 0, "", false).reduce((sum, { value }) => sum + value, 0);
      assert.equal(waits, blocked.reduce((sum, sample) => sum + selected.weight[sample], 0));
      assert.ok(wakerGraph(selected, true).edges.reduce((sum, { value }) => sum + value, 0) <= waits);
    }
  }
});

test("lanes have the times of the threads' clocks", () => {
  for (const path of PAGES) {
    const data = decodeCapture(readRecords(path));
    if (data.times.intervals.count === 0 || data.losses.times > 0) continue;
    const sums = sumLanes(data, new Uint8Array(data.samples.count).fill(1), new Uint8Array(4).fill(1));
    const columns = 100;
    const out = new Float64Array(4 * columns);
    data.threads.forEach(({ hasClock, runningNs, runnableNs, blockedNs, label }, thread) => {
      laneColumns(data, sums, thread, 0, data.meta.lengthNs / columns, columns, out, null);
      const times = [0, 1, 2].map((kind) => Math.round(out.reduce((sum, value, at) => sum + (at % 4 === kind ? value : 0), 0)));
      if (hasClock) assert.deepEqual(times, [runningNs, runnableNs, blockedNs], `${path} ${label}`);
    });
  }
});

test("changes are those of `systemscope diff`", () => {
  for (const before of PAGES) {
    for (const after of PAGES) {
      const [one, other] = [before, after].map((path) => decodeCapture(readRecords(path)));
      const { status, stdout } = spawnSync(PROGRAM, ["diff", before, after, "--format", "json"], { maxBuffer: 2 ** 30, encoding: "utf8" });
      assert.equal(whyNotComparable(one, other) === "", status === 0, `${before} ${after}`);
      if (status !== 0) continue;
      const state = { ...initialState(), idle: /** @type {const} */ ("show") };
      const changes = new Map(findChanges(select(one, state), select(other, state))
        .map((change) => [`${change.name}\n${STATE_NAMES[change.state]}`, change]));
      for (const { function: name, state: of, before: old, after: now, deviation, significant } of JSON.parse(stdout).functions) {
        const ofState = of === "off CPU" ? "unknown" : of === "on CPU" ? "running" : of;
        const change = changes.get(`${name}\n${ofState}`);
        assert.ok(change, `${name} ${of}`);
        for (const [ours, theirs] of [[change.before, old], [change.after, now], [change.deviation, deviation]]) {
          assert.ok(Math.abs(ours - theirs) <= 1e-9 * Math.max(1, Math.abs(theirs)), `${name} ${of}: ${ours} ${theirs}`);
        }
        assert.equal(change.isSignificant, significant);
      }
    }
  }
});
