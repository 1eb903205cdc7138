import assert from "node:assert/strict";
import { test } from "node:test";
import { axisStep, eachPart, laneColumns, laneShares, sumLanes, waitPath, wakerOfRow } from "../lanes.js";
import { madeCapture, makeRandom } from "./made.mjs";

const ALL = new Uint8Array(4).fill(1);

/** Lanes with gaps, intervals of several states, and waits that other threads end. */
function randomLanes(seed) {
  const random = makeRandom(seed);
  const samples = Array.from({ length: 12 }, (_, at) => (
    { thread: at % 4, state: 3, stack: [], value: 1, reason: 1 + (at % 3), wakers: at < 8 ? [random(4)] : undefined }));
  const intervals = [];
  for (let thread = 0; thread < 4; thread++) {
    for (let at = random(50); at < 5000;) {
      const length = 1 + random(120);
      const state = 1 + random(4);
      const running = random(length + 1);
      const runnable = random(length - running + 1);
      const mixed = [running, runnable, length - running - runnable];
      const sample = state === 3 ? thread + 4 * random(3) : -1;
      intervals.push({ thread, start: at, length, state, sample, mixed });
      at += length + (random(6) === 0 ? random(100) : 0);
    }
  }
  const data = madeCapture({ threads: ["a", "b", "c", "d"], samples, intervals });
  return { data, intervals };
}

test("columns have the time of each state, however wide they are", () => {
  for (let seed = 1; seed < 8; seed++) {
    const { data, intervals } = randomLanes(seed);
    const isShown = new Uint8Array(data.samples.count).fill(1);
    isShown[3] = 0;
    const sums = sumLanes(data, isShown, ALL);
    for (const [from, step, columns] of [[0, 1, 5200], [0, 700, 8], [-100, 37, 160], [1234, 3, 90]]) {
      for (let thread = 0; thread < 4; thread++) {
        const out = new Float64Array(4 * columns);
        const rows = new Int32Array(columns);
        laneColumns(data, sums, thread, from, step, columns, out, rows);
        for (let column = 0; column < columns; column++) {
          const [begin, end] = [from + column * step, from + (column + 1) * step];
          const expected = [0, 0, 0, 0];
          for (const { thread: of, start, length, state, sample, mixed } of intervals) {
            const part = Math.min(end, start + length) - Math.max(begin, start);
            if (of !== thread || part <= 0) continue;
            if (state === 4) mixed.forEach((ns, at) => (expected[at] += (ns * part) / length));
            else expected[sample === 3 ? 3 : state - 1] += part;
          }
          for (let kind = 0; kind < 4; kind++) assert.ok(Math.abs(out[4 * column + kind] - expected[kind]) < 1e-6);
          if (rows[column] >= 0) {
            const { start, length } = data.times.intervals;
            assert.ok(start[rows[column]] <= begin && end <= start[rows[column]] + length[rows[column]]);
          }
        }
      }
    }
  }
});

test("parts of a lane follow each other without a hole", () => {
  const { data } = randomLanes(3);
  let done = 100;
  eachPart(data, 1, 100, 4000, (row, begin, end) => {
    assert.equal(begin, done);
    assert.ok(end > begin && row < data.times.intervals.count);
    done = end;
  });
  assert.equal(done, 4000);
  const shares = laneShares(data, 1, 100, 4000);
  assert.ok(Math.abs(shares.reduce((one, other) => one + other) - 3900) < 1e-6);
});

test("what a wait waited for adds up to the wait", () => {
  for (let seed = 1; seed < 8; seed++) {
    const { data } = randomLanes(seed);
    const { length, state, count } = data.times.intervals;
    for (let row = 0; row < count; row++) {
      if (state[row] !== 3) continue;
      const parts = waitPath(data, row);
      assert.equal(parts.reduce((sum, part) => sum + part.ns, 0), length[row]);
    }
  }
});

test("a wait is what its waker did meanwhile, and the waker's waker", () => {
  const samples = [
    { thread: 0, state: 3, stack: [], value: 100, reason: 1, wakers: [1] },
    { thread: 1, state: 3, stack: [], value: 60, reason: 2, wakers: [2] },
    { thread: 2, state: 3, stack: [], value: 10, reason: 13 },
  ];
  const intervals = [
    { thread: 0, start: 0, length: 100, state: 3, sample: 0 },
    { thread: 1, start: 0, length: 10, state: 1 }, { thread: 1, start: 10, length: 60, state: 3, sample: 1 },
    { thread: 1, start: 70, length: 30, state: 1 },
    { thread: 2, start: 10, length: 10, state: 3, sample: 2 }, { thread: 2, start: 20, length: 25, state: 2 },
    { thread: 2, start: 45, length: 55, state: 1 },
  ];
  const data = madeCapture({ threads: ["a", "b", "c"], samples, intervals });
  assert.equal(wakerOfRow(data, 0), 1);
  assert.deepEqual(waitPath(data, 0), [
    { thread: 1, state: 1, reason: -1, ns: 40 }, { thread: 2, state: 1, reason: -1, ns: 25 },
    { thread: 2, state: 2, reason: -1, ns: 25 }, { thread: 2, state: 3, reason: 13, ns: 10 },
  ]);
  // Two threads that wake each other end the search.
  data.wakers.thread[1] = 0;
  assert.equal(waitPath(data, 0).reduce((sum, part) => sum + part.ns, 0), 100);
});

test("marks of the axis are round", () => {
  assert.deepEqual([1, 3, 70, 120, 200, 201].map(axisStep), [1, 5, 100, 200, 200, 500]);
});
