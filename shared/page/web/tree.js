// Trees of functions: sums by state, groups, hidden frames, and trees of callers.

/** Function of a tree's root. */
const ROOT_FUNCTION = -1;

/**
 * Merges members to a tree: members with one function below one node are one node. `expand` emits
 * the callees of a member with their functions, and `placed` gets the node of each member.
 * @param {number} functions Number of functions.
 * @param {Int32Array} roots Members of the root.
 * @param {(member: number, emit: (fn: number, callee: number) => void) => void} expand
 * @param {(member: number, node: number) => void} placed
 * @returns {{ tree: Page.Tree, places: Int32Array }} The tree in preorder, and the place in it of each node.
 */
export function mergeTree(functions, roots, expand, placed) {
  /** @type {Int32Array} */
  let parent = new Int32Array(1024);
  /** @type {Int32Array} */
  let fn = new Int32Array(1024);
  parent[0] = -1;
  fn[0] = ROOT_FUNCTION;
  let count = 1;
  /** Node that saw a function last, and the callee's node then. */
  const seenBy = new Int32Array(functions).fill(-1);
  const seen = new Int32Array(functions);
  let members = roots;
  /** Nodes of one depth are consecutive: node `base + n` has the members from `first[n]` on. */
  let first = Int32Array.of(0, roots.length);
  let base = 0;
  let node = 0;
  /** @type {Int32Array} */
  let outMembers = new Int32Array(1024);
  /** @type {Int32Array} */
  let outNodes = new Int32Array(1024);
  let out = 0;
  const emit = (/** @type {number} */ callee, /** @type {number} */ member) => {
    if (seenBy[callee] !== node) {
      seenBy[callee] = node;
      seen[callee] = count;
      if (count === parent.length) {
        parent = copyOf(parent, 2 * count);
        fn = copyOf(fn, 2 * count);
      }
      parent[count] = node;
      fn[count++] = callee;
    }
    if (out === outMembers.length) {
      outMembers = copyOf(outMembers, 2 * out);
      outNodes = copyOf(outNodes, 2 * out);
    }
    outMembers[out] = member;
    outNodes[out++] = seen[callee];
  };
  for (const member of roots) placed(member, 0);
  while (members.length > 0) {
    const next = count;
    out = 0;
    for (let place = 0; place + 1 < first.length; place++) {
      node = base + place;
      for (let row = first[place]; row < first[place + 1]; row++) expand(members[row], emit);
    }
    // The members of the next depth, ordered by their nodes.
    const nextFirst = new Int32Array(count - next + 1);
    for (let row = 0; row < out; row++) {
      nextFirst[outNodes[row] - next + 1]++;
      placed(outMembers[row], outNodes[row]);
    }
    for (let place = 0; place + 1 < nextFirst.length; place++) nextFirst[place + 1] += nextFirst[place];
    const free = nextFirst.slice();
    members = new Int32Array(out);
    for (let row = 0; row < out; row++) members[free[outNodes[row] - next]++] = outMembers[row];
    first = nextFirst;
    base = next;
  }
  return toPreorder(parent, fn, count);
}

/**
 * @param {Int32Array} parents
 * @param {Int32Array} functions
 * @param {number} count
 * @returns {{ tree: Page.Tree, places: Int32Array }}
 */
function toPreorder(parents, functions, count) {
  const size = new Int32Array(count).fill(1);
  for (let node = count - 1; node > 0; node--) size[parents[node]] += size[node];
  const places = new Int32Array(count);
  /** Place of the next callee of each node. */
  const next = new Int32Array(count);
  const parent = new Int32Array(count);
  const fn = new Int32Array(count);
  const end = new Int32Array(count);
  const depth = new Int32Array(count);
  next[0] = 1;
  parent[0] = -1;
  fn[0] = functions[0];
  end[0] = count;
  for (let node = 1; node < count; node++) {
    const above = parents[node];
    const place = next[above];
    next[above] += size[node];
    next[node] = place + 1;
    places[node] = place;
    parent[place] = places[above];
    fn[place] = functions[node];
    end[place] = place + size[node];
    depth[place] = depth[places[above]] + 1;
  }
  return { tree: { count, parent, fn, end, depth }, places };
}

/** Number of blocked time without work, as a state of its own. */
export const IDLE_STATE = 4;

/** In place of the reason of samples that are not blocked, or idle. */
export const NO_REASON = 255;
/** Number of states with the idle state. */
const STATE_COUNT = 5;

/** Samples by node, for each column of nodes. @type {WeakMap<Int32Array, { first: Int32Array, rows: Int32Array }>} */
const ROW_ORDERS = new WeakMap();

/**
 * Returns the samples in the order of their nodes: node n has those from `first[n]` on. A node's
 * descendants follow it, so the samples of a node with its descendants follow one another.
 * @param {Page.Tree} tree
 * @param {Int32Array} node Node of each sample; samples with -1 are left out.
 * @returns {{ first: Int32Array, rows: Int32Array }}
 */
export function orderRows(tree, node) {
  let order = ROW_ORDERS.get(node);
  if (order !== undefined) return order;
  const first = new Int32Array(tree.count + 1);
  for (let row = 0; row < node.length; row++) if (node[row] >= 0) first[node[row] + 1]++;
  for (let at = 0; at < tree.count; at++) first[at + 1] += first[at];
  const next = first.slice();
  const rows = new Int32Array(first[tree.count]);
  for (let row = 0; row < node.length; row++) if (node[row] >= 0) rows[next[node[row]]++] = row;
  order = { first, rows };
  ROW_ORDERS.set(node, order);
  return order;
}

/**
 * Sums of samples at the nodes of a tree, by state. They are differences of running totals, which
 * are exact, so that a new selection costs time for its samples only and not for all nodes.
 */
export class TreeSums {
  /**
   * @param {Page.Tree} tree
   * @param {Int32Array} node Node of each sample.
   * @param {Float64Array} weight Value of each sample.
   * @param {Uint8Array} state State of each sample, or IDLE_STATE.
   * @param {Uint8Array} reason Reason of each sample, or NO_REASON.
   * @param {TreeSums | null} [former] Sums that are no longer used. The new sums take their memory.
   */
  constructor(tree, node, weight, state, reason, former = null) {
    this.end = tree.end;
    const { first, rows } = orderRows(tree, node);
    this.first = first;
    this.rows = rows;
    this.weight = weight;
    this.state = state;
    this.reasons = reason;
    /** Running totals by state; null for states without time. @type {(Float64Array | null)[]} */
    this.running = new Array(STATE_COUNT).fill(null);
    /** Arrays for running totals. */
    this.free = former === null ? [] : former.memory().filter((array) => array.length === rows.length + 1);
    this.runningAll = this.array();
    const present = new Uint8Array(STATE_COUNT);
    let sum = 0;
    for (let place = 0; place < rows.length; place++) {
      const value = weight[rows[place]];
      if (value > 0) present[state[rows[place]]] = 1;
      this.runningAll[place + 1] = sum += value;
    }
    for (let its = 0; its < STATE_COUNT; its++) if (present[its] === 1) this.running[its] = this.runTotals(state, its);
    /** Running totals of blocked time by reason. @type {{ reason: number, running: Float64Array }[] | null} */
    this.byReason = null;
  }

  /**
   * Returns an array for running totals, which start at 0.
   * @returns {Float64Array}
   */
  array() {
    const array = this.free.pop() ?? new Float64Array(this.rows.length + 1);
    array[0] = 0;
    return array;
  }

  /**
   * Returns the arrays of all running totals.
   * @returns {Float64Array[]}
   */
  memory() {
    const arrays = [...this.free, this.runningAll, ...this.running.filter((running) => running !== null)];
    for (const { running } of this.byReason ?? []) arrays.push(running);
    return arrays;
  }

  /**
   * Returns the running totals of the samples with a value in a column.
   * @param {Uint8Array} column
   * @param {number} wanted
   * @returns {Float64Array}
   */
  runTotals(column, wanted) {
    const { rows, weight } = this;
    const running = this.array();
    let sum = 0;
    for (let place = 0; place < rows.length; place++) {
      const row = rows[place];
      if (column[row] === wanted) sum += weight[row];
      running[place + 1] = sum;
    }
    return running;
  }

  /**
   * Returns the value of a node with its descendants in a state.
   * @param {number} node
   * @param {number} state
   * @returns {number}
   */
  total(node, state) {
    const running = this.running[state];
    return running === null ? 0 : running[this.first[this.end[node]]] - running[this.first[node]];
  }

  /**
   * Returns the value of a node alone in a state.
   * @param {number} node
   * @param {number} state
   * @returns {number}
   */
  self(node, state) {
    const running = this.running[state];
    return running === null ? 0 : running[this.first[node + 1]] - running[this.first[node]];
  }

  /**
   * Returns the value of a node with its descendants.
   * @param {number} node
   * @returns {number}
   */
  all(node) {
    return this.runningAll[this.first[this.end[node]]] - this.runningAll[this.first[node]];
  }

  /**
   * Returns the value of a node alone.
   * @param {number} node
   * @returns {number}
   */
  allSelf(node) {
    return this.runningAll[this.first[node + 1]] - this.runningAll[this.first[node]];
  }

  /**
   * Returns the reason of most of the blocked time of a node with its descendants; -1 without
   * blocked time.
   * @param {number} node
   * @returns {number}
   */
  reason(node) {
    this.byReason ??= this.findReasons();
    const [from, to] = [this.first[node], this.first[this.end[node]]];
    let best = -1;
    let most = 0;
    for (const { reason, running } of this.byReason) {
      const value = running[to] - running[from];
      if (value > most) [best, most] = [reason, value];
    }
    return best;
  }

  /** @returns {{ reason: number, running: Float64Array }[]} */
  findReasons() {
    const { rows, weight, reasons } = this;
    const present = new Uint8Array(NO_REASON + 1);
    for (const row of rows) if (weight[row] > 0) present[reasons[row]] = 1;
    const found = [];
    for (let reason = 0; reason < NO_REASON; reason++) if (present[reason] === 1) found.push({ reason, running: this.runTotals(reasons, reason) });
    return found;
  }
}

/**
 * Returns for each node whether the node or one of its callers has a marked function.
 * @param {Page.Tree} tree
 * @param {Uint8Array} marked By function.
 * @returns {Uint8Array}
 */
export function markStacks(tree, marked) {
  const { parent, fn } = tree;
  const marks = new Uint8Array(tree.count);
  for (let node = 1; node < marks.length; node++) {
    marks[node] = marks[parent[node]] | (fn[node] >= 0 ? marked[fn[node]] : 0);
  }
  return marks;
}

/**
 * Returns for each function whether it has a name.
 * @param {Page.Functions} functions
 * @param {string} name
 * @returns {Uint8Array}
 */
export function functionsNamed(functions, name) {
  const marked = new Uint8Array(functions.count);
  for (let fn = 0; fn < marked.length; fn++) marked[fn] = functions.names[fn] === name ? 1 : 0;
  return marked;
}

/**
 * Returns a tree without the frames of marked functions, whose callees move to their callers, and
 * the new node of each node.
 * @param {Page.Tree} tree
 * @param {Uint8Array} hidden By function.
 * @returns {{ tree: Page.Tree, places: Int32Array }}
 */
export function hideFrames(tree, hidden) {
  const { fn, end } = tree;
  const moved = new Int32Array(tree.count);
  // A hidden node has the node whose callee its own callees become, as a number below 0.
  const merged = mergeTree(
    hidden.length,
    Int32Array.of(0),
    (member, emit) => {
      for (let node = member + 1; node < end[member]; ) {
        if (hidden[fn[node]] === 1) {
          // The callees of a hidden frame follow it, and become callees of the member.
          moved[node] = -1 - member;
          node++;
        } else {
          emit(fn[node], node);
          node = end[node];
        }
      }
    },
    (member, node) => (moved[member] = node),
  );
  const { places } = merged;
  for (let node = 0; node < moved.length; node++) {
    moved[node] = moved[node] < 0 ? moved[-1 - moved[node]] : places[moved[node]];
  }
  return { tree: merged.tree, places: moved };
}

/**
 * Returns a tree in which the stacks of each group are below roots of their own. Functions -2 - l
 * are the roots: label l.
 * @param {Page.Tree} tree
 * @param {Int32Array} node Node of each sample.
 * @param {Float64Array} weight Value of each sample; samples without a value are left out.
 * @param {Int32Array} group Group of each sample.
 * @param {number[][]} labels Labels of the roots of each group, outermost first.
 * @returns {{ tree: Page.Tree, node: Int32Array }}
 */
export function groupTree(tree, node, weight, group, labels) {
  // Labels of groups make a small tree, in whose preorder the groups come.
  const depths = new Int32Array(labels.length);
  const ends = new Int32Array(labels.length);
  const { tree: labelTree, places } = mergeTree(
    1 + labels.flat().reduce((most, label) => Math.max(most, label), -1),
    Int32Array.from(labels.keys()),
    (number, emit) => {
      const depth = depths[number]++;
      if (depth < labels[number].length) emit(labels[number][depth], number);
    },
    (number, at) => (ends[number] = at),
  );
  /** Group at each node of the tree of labels, or -1. */
  const groupAt = new Int32Array(labelTree.count).fill(-1);
  ends.forEach((end, number) => (groupAt[places[end]] = number));

  const first = new Int32Array(labels.length + 1);
  for (let row = 0; row < weight.length; row++) if (weight[row] > 0) first[group[row] + 1]++;
  for (let number = 0; number < labels.length; number++) first[number + 1] += first[number];
  const next = first.slice();
  const rows = new Int32Array(first[labels.length]);
  for (let row = 0; row < weight.length; row++) if (weight[row] > 0) rows[next[group[row]]++] = row;

  const seen = new Int32Array(tree.count).fill(-1);
  const moved = new Int32Array(tree.count);
  const movedSamples = new Int32Array(node.length);
  let capacity = Math.min(tree.count + labelTree.count, 1 << 16);
  /** @type {Int32Array} */
  let parent = new Int32Array(capacity);
  /** @type {Int32Array} */
  let fn = new Int32Array(capacity);
  let count = 0;
  /** New node of each node of the tree of labels. */
  const movedLabels = new Int32Array(labelTree.count);
  for (let label = 0; label < labelTree.count; label++) {
    const number = groupAt[label];
    /** @type {Int32Array} */
    let touched = new Int32Array(0);
    if (number >= 0) touched = touchedNodes(tree, node, rows.subarray(first[number], first[number + 1]), seen, number);
    if (count + touched.length + 1 > capacity) {
      capacity = 2 * (count + touched.length + 1);
      parent = copyOf(parent, capacity);
      fn = copyOf(fn, capacity);
    }
    const root = count++;
    movedLabels[label] = root;
    parent[root] = label === 0 ? -1 : movedLabels[labelTree.parent[label]];
    fn[root] = label === 0 ? ROOT_FUNCTION : -2 - labelTree.fn[label];
    moved[0] = root;
    for (const at of touched) {
      if (at === 0) continue;
      const place = count++;
      parent[place] = moved[tree.parent[at]];
      fn[place] = tree.fn[at];
      moved[at] = place;
    }
    if (number >= 0) {
      for (let place = first[number]; place < first[number + 1]; place++) movedSamples[rows[place]] = moved[node[rows[place]]];
    }
  }
  return { tree: finishPreorder(parent.subarray(0, count), fn.subarray(0, count)), node: movedSamples };
}

/**
 * Returns the nodes of the given samples and all their callers, in preorder.
 * @param {Page.Tree} tree
 * @param {Int32Array} node
 * @param {Int32Array} rows
 * @param {Int32Array} seen Group that touched a node last.
 * @param {number} group
 * @returns {Int32Array}
 */
function touchedNodes(tree, node, rows, seen, group) {
  /** @type {Int32Array} */
  let touched = new Int32Array(64);
  let count = 0;
  for (const row of rows) {
    for (let at = node[row]; at > 0 && seen[at] !== group; at = tree.parent[at]) {
      seen[at] = group;
      if (count === touched.length) touched = copyOf(touched, 2 * count);
      touched[count++] = at;
    }
  }
  return touched.subarray(0, count).sort();
}

/**
 * @param {Int32Array} rows
 * @param {number} length
 * @returns {Int32Array}
 */
function copyOf(rows, length) {
  const copy = new Int32Array(length);
  copy.set(rows);
  return copy;
}

/**
 * Completes a tree whose nodes are in preorder.
 * @param {Int32Array} parent
 * @param {Int32Array} fn
 * @returns {Page.Tree}
 */
function finishPreorder(parent, fn) {
  const { length: count } = parent;
  const end = new Int32Array(count).fill(1);
  const depth = new Int32Array(count);
  for (let at = count - 1; at > 0; at--) end[parent[at]] += end[at];
  for (let at = 0; at < count; at++) {
    end[at] += at;
    if (at > 0) depth[at] = depth[parent[at]] + 1;
  }
  return { count, parent, fn, end, depth };
}

/**
 * Returns the tree of what a function calls: all outermost frames of marked functions become the
 * root. Samples outside get the node -1.
 * @param {Page.Tree} tree
 * @param {Int32Array} node
 * @param {Uint8Array} marked By function.
 * @returns {{ tree: Page.Tree, node: Int32Array, roots: Int32Array }} `roots` are the outermost frames in `tree`.
 */
export function calleesOf(tree, node, marked) {
  const { fn, end } = tree;
  /** @type {number[]} */
  const roots = [];
  for (let at = 1; at < tree.count; ) {
    const isRoot = fn[at] >= 0 && marked[fn[at]] === 1;
    if (isRoot) roots.push(at);
    at = isRoot ? end[at] : at + 1;
  }
  const moved = new Int32Array(tree.count).fill(-1);
  const merged = mergeTree(
    marked.length,
    Int32Array.from(roots),
    (member, emit) => {
      for (let at = member + 1; at < end[member]; at = end[at]) emit(fn[at], at);
    },
    (member, at) => (moved[member] = at),
  );
  const movedSamples = new Int32Array(node.length);
  for (let row = 0; row < node.length; row++) {
    const at = moved[node[row]];
    movedSamples[row] = at < 0 ? -1 : merged.places[at];
  }
  return { tree: merged.tree, node: movedSamples, roots: Int32Array.from(roots) };
}

const NO_NODES = new Int32Array(0);

/** A tree in preorder with its sums. @implements {Page.DrawnTree} */
export class PlainTree {
  /**
   * @param {Page.Tree} tree
   * @param {TreeSums} sums
   */
  constructor(tree, sums) {
    this.tree = tree;
    this.sums = sums;
    /** @type {Map<number, Int32Array>} */
    this.known = new Map();
  }

  /** @param {number} node */
  kids(node) {
    let kids = this.known.get(node);
    if (kids === undefined) {
      kids = this.findKids(node);
      this.known.set(node, kids);
    }
    return kids;
  }

  /** @param {number} node */
  findKids(node) {
    const { end, fn } = this.tree;
    const { sums } = this;
    if (end[node] === node + 1) return NO_NODES;
    /** @type {number[]} */
    const kids = [];
    /** @type {number[]} */
    const values = [];
    for (let kid = node + 1; kid < end[node]; kid = end[kid]) {
      const value = sums.all(kid);
      if (value === 0) continue;
      kids.push(kid);
      values.push(value);
    }
    // Roots of groups keep their order.
    if (kids.length < 2 || fn[kids[0]] <= -2) return Int32Array.from(kids);
    const order = kids.map((_, place) => place).sort((one, other) => values[other] - values[one] || one - other);
    return Int32Array.from(order, (place) => kids[place]);
  }

  /** @param {number} node */
  all(node) {
    return this.sums.all(node);
  }

  /**
   * @param {number} node
   * @param {number} state
   */
  total(node, state) {
    return this.sums.total(node, state);
  }

  /** @param {number} node */
  self(node) {
    return this.sums.allSelf(node);
  }

  /** @param {number} node */
  fn(node) {
    return this.tree.fn[node];
  }

  /** @param {number} node */
  parent(node) {
    return this.tree.parent[node];
  }

  /** @param {number} node */
  reason(node) {
    return this.sums.reason(node);
  }
}

/**
 * A tree of callers: the children of a node are its callers. Nodes are made when they are asked for,
 * because all of them together are many more than the stacks.
 * @implements {Page.DrawnTree}
 */
export class CallersTree {
  /**
   * @param {Page.Tree} tree
   * @param {Int32Array} starts Nodes at which the stacks start, going up.
   * @param {TreeSums} sums
   * @param {boolean} isLeaves Whether the starts are leaves with their own values, and become the
   * root's children. Otherwise they are one function with its callees, which is the root.
   */
  constructor(tree, starts, sums, isLeaves) {
    this.tree = tree;
    this.sums = sums;
    this.isLeaves = isLeaves;
    this.nodes = starts;
    /** Values of the starts by state. */
    this.values = sums.running.map((running, state) =>
      running === null ? null : Float64Array.from(starts, (start) => (isLeaves ? sums.self(start, state) : sums.total(start, state))));
    this.fns = [-1];
    this.parents = [-1];
    const all = Int32Array.from(starts.keys());
    /** Numbers of the starts below each node. */
    this.starts = [all];
    /** Node of `tree` for each of these starts: the start itself, or a caller of it. */
    this.cursors = [starts];
    /** @type {(Int32Array | null)[]} */
    this.known = [null];
    /** @type {number[][]} */
    this.totals = [this.sum(all)];
  }

  /**
   * @param {Int32Array} starts
   * @returns {number[]}
   */
  sum(starts) {
    return this.values.map((values) => {
      if (values === null) return 0;
      let total = 0;
      for (const start of starts) total += values[start];
      return total;
    });
  }

  /** @param {number} node */
  kids(node) {
    return (this.known[node] ??= this.findKids(node));
  }

  /**
   * @param {number} node
   * @returns {Int32Array}
   */
  findKids(node) {
    const { parent, fn } = this.tree;
    const starts = this.starts[node];
    const cursors = this.cursors[node];
    const isFirst = node === 0 && this.isLeaves;
    /** @type {Map<number, number>} */
    const numbers = new Map();
    const group = new Int32Array(starts.length);
    const counts = [];
    for (let place = 0; place < starts.length; place++) {
      const up = isFirst ? cursors[place] : parent[cursors[place]];
      if (up <= 0) {
        group[place] = -1;
        continue;
      }
      let number = numbers.get(fn[up]);
      if (number === undefined) {
        number = counts.length;
        numbers.set(fn[up], number);
        counts.push(0);
      }
      group[place] = number;
      counts[number]++;
    }
    const kidStarts = counts.map((count) => new Int32Array(count));
    const kidCursors = counts.map((count) => new Int32Array(count));
    counts.fill(0);
    for (let place = 0; place < starts.length; place++) {
      const number = group[place];
      if (number < 0) continue;
      kidStarts[number][counts[number]] = starts[place];
      kidCursors[number][counts[number]++] = isFirst ? cursors[place] : parent[cursors[place]];
    }
    const kids = [];
    for (const [kidFn, number] of numbers) {
      const kid = this.fns.length;
      this.fns.push(kidFn);
      this.parents.push(node);
      this.starts.push(kidStarts[number]);
      this.cursors.push(kidCursors[number]);
      this.known.push(null);
      this.totals.push(this.sum(kidStarts[number]));
      if (this.all(kid) > 0) kids.push(kid);
    }
    kids.sort((one, other) => this.all(other) - this.all(one) || this.fns[one] - this.fns[other]);
    return Int32Array.from(kids);
  }

  /** @param {number} node */
  all(node) {
    const totals = this.totals[node];
    return totals[0] + totals[1] + totals[2] + totals[3] + totals[4];
  }

  /**
   * @param {number} node
   * @param {number} state
   */
  total(node, state) {
    return this.totals[node][state];
  }

  /** @param {number} node */
  self(node) {
    let below = 0;
    for (const kid of this.kids(node)) below += this.all(kid);
    return this.all(node) - below;
  }

  /** @param {number} node */
  fn(node) {
    return this.fns[node];
  }

  /** @param {number} node */
  parent(node) {
    return this.parents[node];
  }

  /** @param {number} node */
  reason(node) {
    const blocked = this.values[3];
    if (blocked === null) return -1;
    let heaviest = -1;
    let most = 0;
    for (const start of this.starts[node]) {
      if (blocked[start] > most) [heaviest, most] = [start, blocked[start]];
    }
    return heaviest < 0 ? -1 : this.sums.reason(this.nodes[heaviest]);
  }
}
