// Makes small captures for tests of views, without the decoder.

/**
 * Makes a capture. A sample has `thread`, `state`, `stack` (names, root first), `value`, and perhaps
 * `events`, `squares`, `reason`, `idle` and `wakers` (threads). An interval has `thread`, `start`,
 * `length`, `state`, and `sample` or `mixed` (running, runnable, blocked).
 * @param {any} description
 * @returns {any}
 */
export function madeCapture({ threads = ["t"], samples = [], intervals = [], meta = {} }) {
  /** @type {string[]} */
  const names = [];
  /** @param {string} name */
  const number = (name) => {
    if (!names.includes(name)) names.push(name);
    return names.indexOf(name);
  };
  const root = { fn: -1, children: new Map(), at: 0 };
  const leaves = samples.map((/** @type {any} */ sample) => {
    let node = root;
    for (const name of sample.stack ?? []) {
      const fn = number(name);
      if (!node.children.has(fn)) node.children.set(fn, { fn, children: new Map(), at: 0 });
      node = node.children.get(fn);
    }
    return node;
  });
  /** @type {number[][]} */
  const [parent, fn, end, depth] = [[], [], [], []];
  const place = (/** @type {any} */ node, /** @type {number} */ above, /** @type {number} */ deep) => {
    node.at = fn.length;
    fn.push(node.fn);
    parent.push(above);
    depth.push(deep);
    end.push(0);
    for (const child of node.children.values()) place(child, node.at, deep + 1);
    end[node.at] = fn.length;
  };
  place(root, -1, 0);
  const count = samples.length + 3 * threads.length;
  const column = (/** @type {any} */ Kind, /** @type {(sample: any, at: number) => number} */ of, rest = 0) => {
    const made = new Kind(count).fill(rest);
    samples.forEach((/** @type {any} */ sample, /** @type {number} */ at) => (made[at] = of(sample, at)));
    return made;
  };
  const state = column(Uint8Array, (sample) => sample.state);
  const thread = column(Int32Array, (sample) => sample.thread);
  for (let at = samples.length; at < count; at++) {
    state[at] = ((at - samples.length) % 3) + 1;
    thread[at] = Math.floor((at - samples.length) / 3);
  }
  /** @type {number[]} */
  const first = [0];
  /** @type {number[]} */
  const wakerThreads = [];
  const chain = column(Int32Array, (sample) => {
    if (!sample.wakers) return -1;
    wakerThreads.push(...sample.wakers);
    first.push(wakerThreads.length);
    return first.length - 2;
  }, -1);
  const sorted = [...intervals].sort((one, other) => one.thread - other.thread || one.start - other.start);
  const rows = new Int32Array(threads.length + 1);
  for (const { thread: of } of sorted) for (let at = of + 1; at < rows.length; at++) rows[at]++;
  /** @type {any[]} */
  const mixed = [];
  const refers = sorted.map((interval) => {
    if (interval.state !== 4) return interval.sample ?? -1;
    mixed.push(interval.mixed);
    return mixed.length - 1;
  });
  return {
    meta: { lengthNs: 1e9, each: 1, lengths: null, bursts: [0, 0, 0, 0], targets: "", host: "", timelineLeastNs: -1, ...meta },
    unit: "ns", eventName: "", names: threads,
    functions: { count: names.length, names, kinds: new Uint8Array(names.length), modules: names.map(() => ""), languages: names.map(() => "") },
    tree: {
      count: fn.length, parent: Int32Array.from(parent), fn: Int32Array.from(fn),
      end: Int32Array.from(end), depth: Int32Array.from(depth),
    },
    samples: {
      count, measured: samples.length, thread, state, reason: column(Uint8Array, (sample) => sample.reason ?? 0),
      idle: column(Uint8Array, (sample) => (sample.idle ? 1 : 0)), node: column(Int32Array, (_, at) => leaves[at].at),
      wait: column(Int32Array, () => -1, -1), chain, value: column(Float64Array, (sample) => sample.value),
      events: column(Float64Array, (sample) => sample.events ?? 1), longest: new Float64Array(count),
      shortest: new Float64Array(count), squares: column(Float64Array, (sample) => sample.squares ?? 0),
      sampled: new Uint8Array(count),
    },
    threads: threads.map((/** @type {string} */ name, /** @type {number} */ at) => ({
      pid: 1, tid: at + 1, name, label: `${name} 1/${at + 1}`, key: `1/${at + 1}`, process: 0, hasClock: false,
    })),
    processes: [],
    wakers: {
      chains: first.length - 1, first: Int32Array.from(first), name: Int32Array.from(wakerThreads),
      pid: Int32Array.from(wakerThreads, () => 1), tid: Int32Array.from(wakerThreads, (of) => of + 1),
      thread: Int32Array.from(wakerThreads), isThread: Uint8Array.from(wakerThreads, () => 1),
      node: Int32Array.from(wakerThreads, () => 0),
    },
    waits: { count: 0, endedBy: new Int32Array(0) }, resources: [],
    times: {
      intervals: {
        count: sorted.length, first: rows, start: Float64Array.from(sorted, (interval) => interval.start),
        length: Float64Array.from(sorted, (interval) => interval.length), state: Uint8Array.from(sorted, (interval) => interval.state),
        sample: Int32Array.from(refers), mixed: [0, 1, 2].map((at) => Float64Array.from(mixed, (parts) => parts[at])),
      },
      timed: { count: 0, first: new Int32Array(threads.length + 1), time: new Float64Array(0), cpu: new Int32Array(0), sample: new Int32Array(0) },
      events: { count: 0, first: new Int32Array(threads.length + 1) }, spans: { count: 0 },
    },
    losses: { times: 0 }, walkEnds: {},
  };
}

/**
 * Returns a source of numbers below a bound that is the same in each run (xorshift).
 * @param {number} seed
 * @returns {(below: number) => number}
 */
export function makeRandom(seed) {
  let state = seed | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}
