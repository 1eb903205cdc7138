import assert from "node:assert/strict";
import { test } from "node:test";
import { select, initialState } from "../selection.js";
import { blockedSamples, divideFacet, layoutLayers, wakerGraph } from "../wakers.js";
import { madeCapture } from "./made.mjs";

const data = madeCapture({
  threads: ["pool", "pool", "log", "main"],
  samples: [
    { thread: 0, state: 3, stack: ["wait"], value: 50, wakers: [2] }, { thread: 1, state: 3, stack: ["wait"], value: 30, wakers: [2] },
    { thread: 2, state: 3, stack: ["read"], value: 20, wakers: [3] }, { thread: 3, state: 3, stack: ["read"], value: 5, wakers: [0] },
    { thread: 3, state: 3, stack: ["idle"], value: 500, idle: true, wakers: [0] }, { thread: 3, state: 1, stack: ["run"], value: 7 },
    { thread: 1, state: 3, stack: ["nap"], value: 4 },
  ],
});
const selected = select(data, initialState());

test("pairs have the time of the waits that they ended, without idle time", () => {
  const { names, edges } = wakerGraph(selected, false);
  const told = edges.map(({ waker, sleeper, value }) => [names[waker], names[sleeper], value]);
  assert.deepEqual(told, [
    ["log 1/3", "pool 1/1", 50], ["log 1/3", "pool 1/2", 30], ["main 1/4", "log 1/3", 20], ["pool 1/1", "main 1/4", 5],
  ]);
});

test("threads of one name are one node", () => {
  const { names, edges } = wakerGraph(selected, true);
  assert.deepEqual([...names].sort(), ["log 1", "main 1", "pool 1"]);
  assert.equal(edges[0].value, 80);
});

test("wakers stand left of the threads that they wake, and the lightest edge of a circle leads back", () => {
  const { names, edges } = wakerGraph(selected, true);
  const { layers, isBack } = layoutLayers(edges);
  assert.deepEqual(layers.map((nodes) => nodes.map((node) => names[node])), [["main 1"], ["log 1"], ["pool 1"]]);
  assert.deepEqual(isBack, [false, false, true]);
  assert.deepEqual(layoutLayers(edges), layoutLayers(edges));
});

test("a long edge has a place in each layer between its ends", () => {
  const edge = (waker, sleeper, value) => ({ waker, sleeper, value, count: 1 });
  const { layers, lanes } = layoutLayers([edge(0, 1, 9), edge(1, 2, 8), edge(2, 3, 7), edge(0, 3, 1)]);
  assert.deepEqual(lanes.map((lane) => lane.length), [0, 0, 0, 2]);
  assert.deepEqual(layers.map((nodes) => nodes.length), [1, 2, 2, 1]);
});

test("each level of the tree has the time of the level above", () => {
  let list = [{ samples: blockedSamples(selected), value: 109, key: "" }];
  for (let level = 0; level < 4; level++) {
    list = list.flatMap((facet) => {
      const parts = divideFacet(selected, facet.samples, level, facet.key, false);
      assert.equal(parts.reduce((sum, part) => sum + part.value, 0), facet.value);
      return parts;
    });
  }
  assert.equal(list.length, 5);
});
