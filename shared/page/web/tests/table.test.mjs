import assert from "node:assert/strict";
import { test } from "node:test";
import { select, initialState } from "../selection.js";
import { functionTotals, functionNeighbours } from "../table.js";
import { madeCapture, makeRandom } from "./made.mjs";

function randomCapture(seed) {
  const random = makeRandom(seed);
  const samples = [];
  for (let at = 0; at < 300; at++) {
    const stack = Array.from({ length: random(9) }, () => "abcdef"[random(6)]);
    samples.push({ thread: random(3), state: 1 + random(3), stack, value: 1 + random(1000), events: 1 + random(5), idle: random(4) === 0 });
  }
  return { samples, data: madeCapture({ threads: ["x", "y", "z"], samples }) };
}

const only = (data, fn) => Uint8Array.from(data.functions.names, (_, at) => (at === fn ? 1 : 0));

for (const idle of ["show", "hide"]) {
  test(`totals are those of all stacks, one by one (idle: ${idle})`, () => {
    for (let seed = 1; seed < 20; seed++) {
      const { samples, data } = randomCapture(seed);
      const totals = functionTotals(select(data, { ...initialState(), idle }));
      const shown = samples.filter((sample) => idle === "show" || !sample.idle);
      data.functions.names.forEach((name, fn) => {
        for (let state = 1; state < 4; state++) {
          const of = shown.filter((sample) => sample.state === state);
          const sum = (list) => list.reduce((total, sample) => total + sample.value, 0);
          assert.equal(totals.total[fn * 4 + state], sum(of.filter(({ stack }) => stack.includes(name))));
          assert.equal(totals.self[fn * 4 + state], sum(of.filter(({ stack }) => stack.at(-1) === name)));
        }
        const events = shown.filter(({ stack }) => stack.includes(name)).reduce((total, sample) => total + sample.events, 0);
        assert.equal(totals.events[fn], events);
      });
      const none = shown.filter(({ stack }) => stack.length === 0).reduce((total, sample) => total + sample.value, 0);
      assert.equal(totals.self.slice(data.functions.count * 4).reduce((one, other) => one + other), none);
    }
  });
}

test("callers add up to the total, callees and own time too", () => {
  for (let seed = 1; seed < 20; seed++) {
    const { samples, data } = randomCapture(seed);
    const selected = select(data, { ...initialState(), idle: "show" });
    const { nodeTotal } = functionTotals(selected);
    data.functions.names.forEach((name, fn) => {
      const { callers, callees } = functionNeighbours(selected.tree, nodeTotal, only(data, fn));
      const expected = new Map();
      const below = new Map();
      for (const { stack, value } of samples) {
        const outer = stack.indexOf(name);
        if (outer < 0) continue;
        const caller = outer === 0 ? -1 : data.functions.names.indexOf(stack[outer - 1]);
        expected.set(caller, (expected.get(caller) ?? 0) + value);
        const inner = stack.lastIndexOf(name);
        if (inner === stack.length - 1) continue;
        const callee = data.functions.names.indexOf(stack[inner + 1]);
        below.set(callee, (below.get(callee) ?? 0) + value);
      }
      assert.deepEqual(new Map(callers), expected);
      assert.deepEqual(new Map(callees), below);
    });
  }
});

test("the rows of callers are in order of their time", () => {
  const samples = [
    { thread: 0, state: 1, stack: ["a", "f"], value: 1 }, { thread: 0, state: 1, stack: ["b", "f", "f"], value: 3 },
    { thread: 0, state: 1, stack: ["f", "g"], value: 2 },
  ];
  const data = madeCapture({ samples });
  const { nodeTotal } = functionTotals(select(data, initialState()));
  const { callers, callees } = functionNeighbours(data.tree, nodeTotal, only(data, data.functions.names.indexOf("f")));
  const named = (list) => list.map(([fn, value]) => [data.functions.names[fn] ?? "", value]);
  assert.deepEqual(named(callers), [["b", 3], ["", 2], ["a", 1]]);
  assert.deepEqual(named(callees), [["g", 2]]);
});
