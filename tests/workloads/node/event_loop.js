// An event loop with long turns of known lengths, and thousands of short ones. After a line on stdin
// it runs for some seconds, and prints the number and the time of its long turns, and the active
// time of the loop as libuv counts it.
'use strict';

const { performance } = require('perf_hooks');

const STEPS = 40;
const PERIOD_MS = 100;
const cell = new Int32Array(new SharedArrayBuffer(4));
const times = { computed: [], slept: [] };
let isDone = false;

function slow() {
  const end = performance.now() + 30;
  while (performance.now() < end);
}

function sleeper() {
  Atomics.wait(cell, 0, 0, 60);
}

function measure(call, list) {
  const start = performance.now();
  call();
  list.push(performance.now() - start);
}

function quick() {
  if (!isDone) {
    setTimeout(quick, 1);
  }
}

function step(number, before) {
  if (number === STEPS) {
    isDone = true;
    const { active } = performance.eventLoopUtilization(before);
    for (const [name, list] of Object.entries(times)) {
      console.log(`${name} ${list.length}`);
      console.log(`${name}_us ${Math.round(list.reduce((sum, time) => sum + time, 0) * 1000)}`);
    }
    console.log(`active_us ${Math.round(active * 1000)}`);
    console.log('done');
    return;
  }
  if (number % 5 === 4) {
    measure(sleeper, times.slept);
  } else {
    measure(slow, times.computed);
  }
  setTimeout(step, PERIOD_MS, number + 1, before);
}

process.stdin.once('data', () => {
  const before = performance.eventLoopUtilization();
  quick();
  setTimeout(step, PERIOD_MS, 0, before);
});
console.log('ready');
