// The core of the page: decoding, selection, trees, search and the hash. Truth is summed here in a
// plain way from the rows of a made capture.

import assert from "node:assert/strict";
import { test } from "node:test";
import { addressText, decodeCapture, stackNames, waitText, wakerText } from "../data.js";
import { fitName } from "../flame.js";
import { formatCount, formatShare, formatTime, STATE_NAMES } from "../format.js";
import { CaptureError, Reader } from "../proto.js";
import { makeMatcher, matchFunctions, patternFault, sumMatches } from "../search.js";
import { initialState, select } from "../selection.js";
import { hashToState, stateToHash } from "../state.js";
import { calleesOf, CallersTree, functionsNamed, groupTree, markStacks, PlainTree, TreeSums } from "../tree.js";
import { encodeCapture } from "./make.mjs";

const LOCK = 1;
const SLEEP = 13;
const threads = [
  { pid: 7, tid: 7, name: "main", running: 500, runnable: 200, blocked: 300 },
  { pid: 7, tid: 8, name: "worker", running: 100, runnable: 0, blocked: 900 },
];
const samples = [
  { thread: 0, state: 1, user: ["main", "work", "loop"], value: 500, events: 5 },
  { thread: 0, state: 2, user: ["main", "work", "loop"], kernel: ["irq"], value: 200, events: 2 },
  { thread: 0, state: 3, user: ["main", "work", "lock"], kernel: ["futex"], value: 100, wait: { reason: LOCK, detail: "mutex", file: "the lock", holder: { name: "worker", pid: 7, tid: 8 }, wakers: [{ name: "worker", pid: 7, tid: 8, user: ["start", "unlock"] }] } },
  { thread: 0, state: 3, user: ["main", "sleep"], kernel: ["nap"], value: 200, wait: { reason: SLEEP, detail: "for a time", idleness: 2 } },
  { thread: 1, state: 1, user: ["start", "work", "work"], value: 100, events: 1 },
  { thread: 1, state: 3, user: ["start", "wait"], kernel: ["futex"], value: 900, wait: { reason: SLEEP, detail: "for a time", idleness: 3 } },
];
const data = () => decodeCapture(encodeCapture({ threads, samples, lengthNs: 1000 }));

/** Sums the samples that a test lets through. */
const sumOf = (/** @type {(sample: typeof samples[0]) => boolean} */ test) => samples.filter(test).reduce((sum, sample) => sum + sample.value, 0);
const stackOf = (/** @type {typeof samples[0]} */ sample) => [...(sample.user ?? []), ...(sample.kernel ?? [])];
const isIdle = (/** @type {typeof samples[0]} */ sample) => (sample.wait?.idleness ?? 1) >= 2;

/** @param {Partial<Page.State>} change */
const selected = (change, capture = data()) => select(capture, { ...initialState(), idle: "show", ...change });

/** Walks a drawn tree to the end. @returns {Map<string, number>} */
function drawn(tree, names) {
  const found = new Map();
  const open = [[0, ""]];
  while (open.length > 0) {
    const [node, path] = open.pop();
    let below = 0;
    for (const kid of tree.kids(node)) {
      below += tree.all(kid);
      open.push([kid, `${path};${tree.fn(kid) >= 0 ? names[tree.fn(kid)] : tree.fn(kid)}`]);
    }
    assert.equal(tree.self(node), tree.all(node) - below);
    found.set(path.slice(1), tree.all(node));
  }
  return found;
}

test("fields of each type are passed over", () => {
  // Field 1 in each wire type, before field 2 with the number 7.
  const fields = [[0x08, 0x96, 0x01], [0x09, 1, 2, 3, 4, 5, 6, 7, 8], [0x0a, 3, 0x10, 0x08, 0x10], [0x0a, 0], [0x0d, 1, 2, 3, 4]];
  for (const field of fields) {
    const reader = new Reader(Uint8Array.from([...field, 0x10, 7]));
    assert.equal(reader.next(), true);
    reader.skip();
    assert.equal(reader.next(), true);
    assert.deepEqual([reader.field, reader.uint(), reader.next()], [2, 7, false], String(field));
  }
  const short = new Reader(Uint8Array.from([0x0a, 3, 1]));
  short.next();
  assert.throws(() => short.skip(), CaptureError);
});

test("a capture is decoded", () => {
  const capture = data();
  assert.deepEqual(capture.threads.map((thread) => [thread.key, thread.label, thread.runningNs, thread.blockedNs]),
    [["7/7", "main 7/7", 500, 300], ["7/8", "worker 7/8", 100, 900]]);
  assert.deepEqual(capture.processes.map((process) => process.label), ["main 7"]);
  samples.forEach((sample, row) => {
    assert.deepEqual(stackNames(capture, capture.samples.node[row]), stackOf(sample));
    assert.equal(capture.samples.value[row], sample.value);
    assert.equal(capture.samples.idle[row], isIdle(sample) ? 1 : 0);
  });
  const wait = capture.samples.wait[2];
  assert.equal(waitText(capture, wait), "lock: mutex, the lock, held by worker");
  assert.equal(waitText(capture, capture.samples.wait[3]), "sleep: for a time (idle)");
  const row = capture.wakers.first[capture.samples.chain[2]];
  assert.equal(wakerText(capture, row), "worker 7/8");
  assert.equal(capture.wakers.thread[row], 1);
  assert.deepEqual(stackNames(capture, capture.wakers.node[row]), ["start", "unlock"]);
  // The tree is in preorder, and every node's descendants follow it.
  const { tree } = capture;
  for (let node = 1; node < tree.count; node++) {
    assert.ok(tree.parent[node] < node && tree.end[node] <= tree.end[tree.parent[node]]);
  }
});

test("instants are exact after more than 2^53 ns of uptime", () => {
  const startNs = 9_000_000_000_000_123_457n;
  const intervals = [{ thread: 1, start: 3, state: 1, length: 4 }, { thread: 0, start: 1, state: 1, length: 2 }];
  const capture = decodeCapture(encodeCapture({ threads, samples, startNs, intervals }));
  assert.deepEqual([...capture.times.intervals.start], [1, 3]);
  assert.deepEqual([...capture.times.intervals.first], [0, 1, 2]);
  assert.equal(capture.threads[0].startedNs, 0);
});

test("shown and hidden are the whole with every filter", () => {
  const has = (/** @type {string} */ name) => (/** @type {typeof samples[0]} */ sample) => stackOf(sample).includes(name);
  for (const [change, isShown] of /** @type {[Partial<Page.State>, (sample: typeof samples[0]) => boolean][]} */ ([
    [{}, () => true],
    [{ idle: "hide" }, (sample) => !isIdle(sample)],
    [{ threads: ["7/8"] }, (sample) => sample.thread === 1],
    [{ threads: ["9/9"] }, () => false],
    [{ states: ["running", "runnable"] }, (sample) => sample.state < 3],
    [{ reasons: ["lock"] }, (sample) => sample.state < 3 || sample.wait?.reason === LOCK],
    [{ filters: [{ kind: "only", name: "work" }] }, has("work")],
    [{ filters: [{ kind: "without", name: "futex" }] }, (sample) => !has("futex")(sample)],
    [{ filters: [{ kind: "hide", name: "work" }] }, () => true],
    [{ pivot: "futex", filters: [{ kind: "only", name: "main" }] }, (sample) => has("futex")(sample) && has("main")(sample)],
    [{ filters: [{ kind: "only", name: "constructor" }] }, () => false],
  ])) {
    const it = selected(change);
    assert.equal(it.whole, 2000);
    assert.equal(it.shown, sumOf(isShown), JSON.stringify(change));
    assert.equal(it.shown + it.hidden, it.whole);
    for (let state = 0; state < 4; state++) assert.equal(it.byState[state], sumOf((sample) => isShown(sample) && sample.state === state));
  }
  assert.equal(selected({ idle: "hide" }).idleHidden, 1100);
  assert.equal(selected({ idle: "hide", threads: ["7/7"] }).idleHidden, 200);
});

test("trees have the sums of the samples", () => {
  const capture = data();
  const { names } = capture.functions;
  const it = selected({}, capture);
  const sums = new TreeSums(it.tree, it.node, it.weight, capture.samples.state, capture.samples.reason);
  const tree = new PlainTree(it.tree, sums);
  const found = drawn(tree, names);
  assert.equal(found.get(""), 2000);
  assert.equal(found.get("main;work"), 800);
  assert.equal(found.get("main;work;loop"), 700);
  assert.equal(found.get("start;work;work"), 100);
  assert.equal(tree.total(0, 1), 600);
  assert.equal(tree.total(0, 3), 1200);
  assert.equal(tree.reason(0), SLEEP);

  const inverted = new CallersTree(it.tree, Int32Array.from(it.tree.fn.keys()).filter((node) => sums.allSelf(node) > 0), sums, true);
  const leaves = drawn(inverted, names);
  assert.equal(leaves.get(""), 2000);
  assert.equal(leaves.get("futex"), 1000);
  assert.equal(leaves.get("futex;lock;work;main"), 100);
  assert.equal(leaves.get("work;work;start"), 100);

  const marked = functionsNamed(capture.functions, "work");
  const callees = calleesOf(it.tree, it.node, marked);
  const below = drawn(new PlainTree(callees.tree, new TreeSums(callees.tree, callees.node, it.weight, capture.samples.state, capture.samples.reason)), names);
  // The recursive call counts once.
  assert.equal(below.get(""), 900);
  assert.equal(below.get("work"), 100);
  assert.equal(below.get("loop"), 700);
  const above = drawn(new CallersTree(it.tree, callees.roots, sums, false), names);
  assert.deepEqual([above.get(""), above.get("main"), above.get("start")], [900, 800, 100]);
});

test("hidden frames give their time to their callers", () => {
  const capture = data();
  const it = selected({ filters: [{ kind: "hide", name: "work" }] }, capture);
  const sums = new TreeSums(it.tree, it.node, it.weight, capture.samples.state, capture.samples.reason);
  const found = drawn(new PlainTree(it.tree, sums), capture.functions.names);
  assert.deepEqual([found.get("main"), found.get("main;loop"), found.get("start"), found.get("start;wait")], [1000, 700, 1000, 900]);
  assert.equal(sums.allSelf(it.node[4]), 100);
});

test("groups have trees of their own", () => {
  const capture = data();
  const it = selected({ threads: [] }, capture);
  const group = capture.samples.thread;
  const made = groupTree(it.tree, it.node, it.weight, group, [[0], [1]]);
  const sums = new TreeSums(made.tree, made.node, it.weight, capture.samples.state, capture.samples.reason);
  const found = drawn(new PlainTree(made.tree, sums), capture.functions.names);
  assert.deepEqual([found.get("-2"), found.get("-3"), found.get("-2;main;work"), found.get("-3;start;work")], [1000, 1000, 800, 100]);
  for (let node = 1; node < made.tree.count; node++) {
    assert.ok(made.tree.parent[node] < node && made.tree.end[node] <= made.tree.end[made.tree.parent[node]]);
  }
});

test("a search sums each stack once", () => {
  const capture = data();
  const it = selected({}, capture);
  const sum = (/** @type {string} */ text) => sumMatches(it, markStacks(it.tree, matchFunctions(capture.functions, text)));
  assert.deepEqual(sum("WORK"), { all: 900, byState: [0, 600, 200, 100] });
  assert.equal(sum("/^(futex|irq)$/").all, 1200);
  assert.equal(sum("/(/").all, 0);
  assert.notEqual(patternFault("/(/"), "");
  assert.equal(patternFault("(("), "");
  assert.ok(makeMatcher("operator[]")("operator[]"));
});

test("a time range takes the parts of intervals inside", () => {
  const intervals = [
    { thread: 0, start: 0, state: 1, length: 400 },
    { thread: 0, start: 400, state: 3, length: 100, sample: 2 },
    { thread: 0, start: 500, state: 2, length: 200, sample: 1 },
    { thread: 0, start: 700, state: 4, length: 300, runnable: 0, blocked: 200 },
    { thread: 1, start: 0, state: 3, length: 900, sample: 5 },
    { thread: 1, start: 900, state: 1, length: 100 },
  ];
  const timed = [{ thread: 0, time: 50, sample: 0 }, { thread: 0, time: 250, sample: 0 }, { thread: 1, time: 950, sample: 4 }];
  const capture = decodeCapture(encodeCapture({ threads, samples, intervals, timed, lengthNs: 1000 }));
  const all = selected({ range: [0, 1000] }, capture);
  assert.deepEqual(all.byState, [0, 600, 200, 1200]);
  assert.equal(all.whole, 2000);
  const part = selected({ range: [300, 450], threads: ["7/7"] }, capture);
  // No CPU sample is in this range, so no stack explains the running time.
  assert.deepEqual(part.byState, [0, 100, 0, 50]);
  assert.equal(part.whole, 300);
  assert.equal(part.weight[capture.samples.measured], 100);
  assert.equal(part.weight[2], 50);
  const mixed = selected({ range: [700, 850] }, capture);
  assert.deepEqual(mixed.byState, [0, 50, 0, 250]);
  const first = selected({ range: [0, 101] }, capture);
  assert.equal(first.weight[0], 101);
  assert.equal(first.windowNs, 101);
  let sum = 0;
  for (let from = 0; from < 1000; from += 37) sum += selected({ range: [from, Math.min(1000, from + 37)] }, capture).shown;
  assert.equal(sum, 2000);
});

test("samples of a clock are time, and other samples are events", () => {
  const rows = [{ thread: 0, state: 0, user: ["main"], value: 3, events: 3 }];
  const clock = decodeCapture(encodeCapture({ threads, samples: rows, unit: 1, sampling: { event: "cpu-clock", frequency: 49 } }));
  assert.deepEqual([clock.unit, clock.samples.value[0], clock.samples.state[0]], ["ns", 3 * 20_408_163, 1]);
  const misses = decodeCapture(encodeCapture({ threads, samples: rows, unit: 1, sampling: { event: "cache-misses", period: 1000 } }));
  assert.deepEqual([misses.unit, misses.eventName, misses.samples.value[0]], ["events", "cache-misses", 3000]);
});

test("a capture that is cut short or edited is an error, never a hang", () => {
  const whole = encodeCapture({ threads, samples, intervals: [{ thread: 0, start: 0, state: 1, length: 5 }] });
  assert.throws(() => decodeCapture(encodeCapture({ threads, samples, isCut: true })), CaptureError);
  for (let length = 0; length < whole.length; length++) {
    assert.throws(() => decodeCapture(whole.subarray(0, length)), CaptureError, `cut at ${length}`);
  }
  let refused = 0;
  for (let place = 0; place < whole.length; place++) {
    for (const value of [0, 1, 127, 128, 255]) {
      const edited = whole.slice();
      edited[place] = value;
      try {
        const capture = decodeCapture(edited);
        select(capture, initialState());
      } catch (error) {
        assert.ok(error instanceof CaptureError, `${place} ${value}: ${error}`);
        refused++;
      }
    }
  }
  assert.ok(refused > 100);
});

test("hostile names are names", () => {
  const names = ["__proto__", "constructor", "</script><script>", "toString", "a\u2028b", "x".repeat(65536), ""];
  const deep = Array.from({ length: 5000 }, (_, depth) => names[depth % names.length]);
  const capture = decodeCapture(encodeCapture({ threads: [{ pid: 1, tid: 1, name: "__proto__" }], samples: [{ thread: 0, state: 1, user: deep, value: 9 }] }));
  assert.equal(stackNames(capture, capture.samples.node[0]).length, 5000);
  const it = select(capture, { ...initialState(), filters: [{ kind: "only", name: "__proto__" }], threads: ["1/1"] });
  assert.equal(it.shown, 9);
  const sums = new TreeSums(it.tree, it.node, it.weight, capture.samples.state, capture.samples.reason);
  assert.equal(new PlainTree(it.tree, sums).all(it.tree.count - 1), 9);
});

test("the hash holds the state by names", () => {
  /** @type {Page.State} */
  const state = {
    view: "flame", threads: ["7/8", "=a & b"], states: ["running"], reasons: ["local IPC"], idle: "show", range: [5, 1_000_000_007],
    filters: [{ kind: "only", name: "a;b #é" }, { kind: "hide", name: "<x>" }], pivot: "p=q", search: "/a+b/",
    options: new Map([["flame.zoom", "main;f(int, char)"]]),
  };
  assert.deepEqual(hashToState(`#${stateToHash(state)}`), state);
  assert.equal(stateToHash(initialState()), "");
  assert.deepEqual(hashToState("#range=9-3&idle=x&nonsense=1&range=a"), initialState());
});

test("numbers and names are short", () => {
  assert.deepEqual([0, 999, 1234, 22_667_961_000, 1e12].map(formatTime), ["0 ns", "999 ns", "1.23 µs", "22.7 s", "1,000 s"]);
  assert.equal(formatCount(1234567), "1,234,567");
  assert.deepEqual([formatShare(1, 3), formatShare(0, 0), formatShare(1, 10_000), formatShare(5, 5)], ["33.3 %", "0 %", "0.01 %", "100 %"]);
  assert.equal(fitName("short", 9), "short");
  assert.equal(fitName("ns::run<int>(char*, long)", 12), "ns::run<…>");
  assert.equal(fitName("asm_sysvec_apic_timer_interrupt", 10), "asm_sysve…");
  assert.equal(fitName("std::sys::backtrace::short", 8), "…::short");
  assert.equal(fitName("x", 1), "");
});

test("addresses are written as Rust writes them", () => {
  const text = (/** @type {number[]} */ ...bytes) => addressText(Uint8Array.from(bytes));
  assert.equal(text(10, 0, 0, 2), "10.0.0.2");
  assert.equal(text(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1), "::1");
  assert.equal(text(0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1), "2001:db8:0:1::1");
  assert.equal(text(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 1, 2, 3, 4), "::ffff:1.2.3.4");
  assert.deepEqual(STATE_NAMES.slice(1, 4), ["running", "runnable", "blocked"]);
});
