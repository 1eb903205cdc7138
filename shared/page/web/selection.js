// Decides what a state of the page shows: the value of each sample.

import { STATE_NAMES, REASON_NAMES } from "./format.js";
import { functionsNamed, hideFrames, markStacks } from "./tree.js";

/**
 * Returns the state of a page that was just opened.
 * @returns {Page.State}
 */
export function initialState() {
  return {
    view: "summary", threads: [], states: [], reasons: [], idle: "hide", range: null,
    filters: [], pivot: "", search: "", options: new Map(),
  };
}

/**
 * Computes what a state shows of a capture.
 * @param {Page.Data} data
 * @param {Page.State} state
 * @returns {Page.Selected}
 */
export function select(data, state) {
  const { samples } = data;
  const { value, count } = valuesInRange(data, state.range);
  const isShownThread = threadMask(data, state.threads);
  const isShownState = nameMask(STATE_NAMES, state.states);
  const isShownReason = nameMask(REASON_NAMES, state.reasons);
  const isShownStack = stackMask(data, state);
  const weight = new Float64Array(samples.count);
  const isIdleHidden = state.idle === "hide";
  /** @type {[number, number, number, number]} */
  const byState = [0, 0, 0, 0];
  let whole = 0;
  let idleHidden = 0;
  for (let row = 0; row < weight.length; row++) {
    const it = value[row];
    if (it === 0) continue;
    whole += it;
    const its = samples.state[row];
    if (isShownThread[samples.thread[row]] === 0 || isShownState[its] === 0) continue;
    if (its === 3 && isShownReason[samples.reason[row]] === 0) continue;
    if (isShownStack !== null && isShownStack[samples.node[row]] === 0) continue;
    if (isIdleHidden && samples.idle[row] === 1) {
      idleHidden += it;
      continue;
    }
    weight[row] = it;
    byState[its] += it;
  }
  const shown = byState[0] + byState[1] + byState[2] + byState[3];
  const { tree, node } = shownTree(data, state.filters);
  /** @type {Float64Array | null} */
  let counts = null;
  return {
    data, tree, node, weight,
    get count() {
      counts ??= count.map((its, row) => (weight[row] > 0 ? its : 0));
      return counts;
    },
    shown, whole, hidden: whole - shown, idleHidden, byState,
    windowNs: state.range === null ? data.meta.lengthNs : state.range[1] - state.range[0],
  };
}

/**
 * @param {Page.Data} data
 * @param {string[]} keys
 * @returns {Uint8Array}
 */
function threadMask(data, keys) {
  const mask = new Uint8Array(data.threads.length);
  if (keys.length === 0) return mask.fill(1);
  const wanted = new Set(keys);
  data.threads.forEach((thread, number) => (mask[number] = wanted.has(thread.key) ? 1 : 0));
  return mask;
}

/**
 * @param {string[]} all
 * @param {string[]} names
 * @returns {Uint8Array}
 */
function nameMask(all, names) {
  return Uint8Array.from(all, (name) => (names.length === 0 || names.includes(name) ? 1 : 0));
}

/**
 * Returns whether the filters show the stack of each node, or null if they show all.
 * @param {Page.Data} data
 * @param {Page.State} state
 * @returns {Uint8Array | null}
 */
function stackMask(data, state) {
  const filters = state.filters.filter((filter) => filter.kind !== "hide");
  if (state.pivot !== "") filters.push({ kind: "only", name: state.pivot });
  if (filters.length === 0) return null;
  const mask = new Uint8Array(data.tree.count).fill(1);
  for (const { kind, name } of filters) {
    const has = markStacks(data.tree, functionsNamed(data.functions, name));
    const wanted = kind === "only" ? 1 : 0;
    for (let node = 0; node < mask.length; node++) if (has[node] !== wanted) mask[node] = 0;
  }
  return mask;
}

/** Trees without hidden frames, by capture. @type {WeakMap<Page.Data, { key: string, tree: Page.Tree, node: Int32Array }>} */
const SHOWN_TREES = new WeakMap();

/**
 * Returns the tree without hidden frames, and the node of each sample in it.
 * @param {Page.Data} data
 * @param {Page.Filter[]} filters
 * @returns {{ tree: Page.Tree, node: Int32Array }}
 */
function shownTree(data, filters) {
  const names = filters.filter((filter) => filter.kind === "hide").map((filter) => filter.name);
  if (names.length === 0) return { tree: data.tree, node: data.samples.node };
  const key = JSON.stringify(names);
  const known = SHOWN_TREES.get(data);
  if (known !== undefined && known.key === key) return known;
  const hidden = new Uint8Array(data.functions.count);
  for (const name of names) {
    functionsNamed(data.functions, name).forEach((is, fn) => (hidden[fn] |= is));
  }
  const { tree, places } = hideFrames(data.tree, hidden);
  const node = data.samples.node.map((old) => places[old]);
  const made = { key, tree, node };
  SHOWN_TREES.set(data, made);
  return made;
}

/** Values in the last time range, by capture. @type {WeakMap<Page.Data, { key: string, value: Float64Array, count: Float64Array }>} */
const RANGE_VALUES = new WeakMap();

/**
 * Returns the value of each sample in a time range, and the number of its intervals or CPU samples.
 * @param {Page.Data} data
 * @param {[number, number] | null} range
 * @returns {{ value: Float64Array, count: Float64Array }}
 */
export function valuesInRange(data, range) {
  const { samples, times } = data;
  if (range === null || (times.intervals.count === 0 && times.timed.count === 0)) {
    return { value: samples.value, count: samples.events };
  }
  const key = range.join(" ");
  const known = RANGE_VALUES.get(data);
  if (known !== undefined && known.key === key) return known;
  const made = { key, value: new Float64Array(samples.count), count: new Float64Array(samples.count) };
  if (times.intervals.count === 0) addTimed(data, range, made.value, made.count);
  else addIntervals(data, range, made.value, made.count);
  RANGE_VALUES.set(data, made);
  return made;
}

/**
 * Adds the CPU samples in a time range, for captures without intervals.
 * @param {Page.Data} data
 * @param {[number, number]} range
 * @param {Float64Array} value
 * @param {Float64Array} count
 */
function addTimed(data, [from, to], value, count) {
  const { timed } = data.times;
  for (let row = 0; row < timed.count; row++) {
    if (timed.time[row] < from || timed.time[row] >= to) continue;
    value[timed.sample[row]] += data.meta.each;
    count[timed.sample[row]]++;
  }
}

/**
 * Adds the parts of intervals in a time range. The CPU samples of a thread share its running time
 * equally. Time that no stack explains goes to the samples at the end (see `Page.Samples`).
 * @param {Page.Data} data
 * @param {[number, number]} range
 * @param {Float64Array} value
 * @param {Float64Array} count
 */
function addIntervals(data, [from, to], value, count) {
  const { samples, times } = data;
  const { intervals, timed } = times;
  const { start, length, state, sample, mixed } = intervals;
  const hasState = [false, false, false, false];
  for (let row = 0; row < samples.measured; row++) hasState[samples.state[row]] = true;
  // Profiles of one tool may not distinguish states.
  if (hasState[0]) hasState[2] = hasState[3] = true;
  for (let thread = 0; thread < data.threads.length; thread++) {
    const last = intervals.first[thread + 1];
    const unexplained = samples.measured + 3 * thread;
    let running = 0;
    let runnable = 0;
    let blocked = 0;
    for (let row = firstEndingAfter(intervals, thread, from); row < last && start[row] < to; row++) {
      const end = start[row] + length[row];
      const part = Math.min(end, to) - Math.max(start[row], from);
      if (part <= 0) continue;
      if (state[row] === 4) {
        const share = part / length[row];
        const its = sample[row];
        const itsRunnable = Math.min(part, Math.round(mixed[1][its] * share));
        const itsBlocked = Math.min(part - itsRunnable, Math.round(mixed[2][its] * share));
        runnable += itsRunnable;
        blocked += itsBlocked;
        running += part - itsRunnable - itsBlocked;
      } else if (state[row] === 1) {
        running += part;
      } else if (sample[row] >= 0) {
        value[sample[row]] += part;
        count[sample[row]]++;
      } else if (state[row] === 2) {
        runnable += part;
      } else {
        blocked += part;
      }
    }
    if (hasState[1]) shareRunning(timed, thread, from, to, running, unexplained, value, count);
    if (hasState[2]) value[unexplained + 1] += runnable;
    if (hasState[3]) value[unexplained + 2] += blocked;
  }
}

/**
 * Shares the running time of a thread equally among its CPU samples in a time range.
 * @param {Page.TimedSamples} timed
 * @param {number} thread
 * @param {number} from
 * @param {number} to
 * @param {number} running
 * @param {number} unexplained Sample that gets the time without CPU samples.
 * @param {Float64Array} value
 * @param {Float64Array} count
 */
function shareRunning(timed, thread, from, to, running, unexplained, value, count) {
  const first = firstAtLeast(timed.time, timed.first[thread], timed.first[thread + 1], from);
  const last = firstAtLeast(timed.time, first, timed.first[thread + 1], to);
  if (first === last) {
    value[unexplained] += running;
    return;
  }
  const each = Math.floor(running / (last - first));
  let left = running - each * (last - first);
  for (let row = first; row < last; row++) {
    const more = Math.min(1, left);
    left -= more;
    value[timed.sample[row]] += each + more;
    count[timed.sample[row]]++;
  }
}

/**
 * Returns the first interval of a thread that ends after an instant.
 * @param {Page.Intervals} intervals
 * @param {number} thread
 * @param {number} instant
 * @returns {number}
 */
export function firstEndingAfter(intervals, thread, instant) {
  const { first, start, length } = intervals;
  let low = first[thread];
  let high = first[thread + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (start[middle] + length[middle] > instant) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * Returns the first row between `low` and `high` whose time is at least an instant.
 * @param {Float64Array} times
 * @param {number} low
 * @param {number} high
 * @param {number} instant
 * @returns {number}
 */
export function firstAtLeast(times, low, high, instant) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] >= instant) high = middle;
    else low = middle + 1;
  }
  return low;
}
