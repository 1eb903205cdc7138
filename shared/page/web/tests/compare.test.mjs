import assert from "node:assert/strict";
import { test } from "node:test";
import { select, initialState } from "../selection.js";
import { findChanges, mixColours, whyNotComparable } from "../compare.js";
import { madeCapture } from "./made.mjs";

/** CPU samples of 1 ms, as in the tests of shared/profile/src/diff.rs. */
function capture(counts, seconds, bursts = [0, 0, 0, 0]) {
  const samples = Object.entries(counts).map(([stack, events]) => (
    { thread: 0, state: 0, stack: stack.split(";"), value: events * 1e6, events }));
  return madeCapture({ samples, meta: { lengthNs: seconds * 1e9, each: 1e6, bursts } });
}

const changesOf = (before, after) => findChanges(select(before, initialState()), select(after, initialState()));
const changeOf = (changes, name) => changes.find((change) => change.name === name);

test("growth beyond chance comes first", () => {
  const before = capture({ "main;f": 900, "main;g": 5000, "main;h": 100 }, 10);
  const after = capture({ "main;f": 2400, "main;g": 10000, "main;h": 210 }, 20);
  const changes = changesOf(before, after);
  const f = changeOf(changes, "f");
  assert.deepEqual([f.before, f.after], [90e6, 120e6]);
  // The deviation includes one more event on each side.
  assert.ok(Math.abs(f.deviation - Math.hypot((Math.sqrt(901) * 1e6) / 10, (Math.sqrt(2401) * 1e6) / 20)) < 1e-3);
  assert.ok(f.isSignificant && !f.isNew && !f.isGone);
  const [g, h] = ["g", "h"].map((name) => changeOf(changes, name));
  assert.ok(!g.isSignificant && !h.isSignificant);
  assert.equal(g.difference, 0);
  assert.ok(changes.slice(0, 2).some(({ name }) => name === "f"));
});

test("a function that calls itself has its time once", () => {
  const one = capture({ "f;f;g": 100 }, 1);
  assert.equal(changeOf(changesOf(one, one), "f").before, 100e6);
});

test("time in bursts varies more", () => {
  const before = capture({ g: 100, f: 100 }, 1);
  const isFound = (bursts) => changeOf(changesOf(before, capture({ g: 100, f: 160 }, 1, bursts)), "f").isSignificant;
  assert.ok(isFound([0, 0, 0, 0]));
  assert.ok(isFound([90, 900, 0, 0]));
  assert.ok(!isFound([900, 900, 0, 0]));
});

test("new and vanished functions have their mark", () => {
  const changes = changesOf(capture({ old: 7, same: 1 }, 1), capture({ new: 9, same: 1 }, 1));
  const [old, fresh] = ["old", "new"].map((name) => changeOf(changes, name));
  assert.ok(old.isGone && !old.isNew && fresh.isNew && !fresh.isGone);
  // As in the binomial test, 7 events against none may be chance, and 9 are not.
  assert.ok(!old.isSignificant && fresh.isSignificant);
});

test("captures that measure something else are refused", () => {
  const one = capture({ f: 1 }, 1);
  assert.equal(whyNotComparable(one, one), "");
  assert.match(whyNotComparable(one, capture({ f: 1 }, 0)), /how long/);
  assert.match(whyNotComparable(one, { ...one, unit: "events" }), /samples, the other time/);
  const waits = { ...one, meta: { ...one.meta, lengths: { least: 1000, most: 1e9, shortAreSampled: false } } };
  assert.match(whyNotComparable(one, waits), /off the CPU/);
});

test("colours mix", () => {
  assert.equal(mixColours("#000000", "#ffffff", 0.5), "#808080");
  assert.equal(mixColours("#102030", "#ffffff", 0), "#102030");
});
