// The table of functions: own and total time in each state, callers and callees.
import { element, button } from "./dom.js";
import { STATE_NAMES, formatCount, formatShare } from "./format.js";
import { makeMatcher } from "./search.js";
import { functionsNamed } from "./tree.js";

/** Number of columns of `functionTotals`: the states 0 to 3. */
const STATES = 4;

/** Maximum functions of a stack that a list has. */
const MOST_FRAMES = 300;

/** Maximum rows of the lists of callers and callees. */
const MOST_NEIGHBOURS = 200;

/**
 * Returns the title of a state. Time off the CPU has no state in profiles that do not tell
 * waiting for a CPU from waiting for something else.
 * @param {Page.Data} data
 * @param {number} state
 * @returns {string}
 */
export function stateTitle(data, state) {
  return state === 0 && data.meta.lengths !== null ? "off CPU" : STATE_NAMES[state];
}

/**
 * Times of all functions. Index `fn * 4 + state`; the entry `functions.count` is time without a
 * stack. `total` counts a function that calls itself once. `nodeTotal` is the time of a node.
 * @typedef {{ self: Float64Array, total: Float64Array, events: Float64Array, nodeTotal: (node: number) => number }} FunctionTotals
 */

/**
 * Samples in the order of their nodes, and the parts of this order that have a function on their
 * stacks. A selection then costs a pass over samples and parts, and not one over all nodes.
 * `order` has the samples. The samples of the nodes before node n are the first `rank[n]` of it.
 * Part p is from `low[p]` to `high[p]` and belongs to function `owner[p]`.
 * @typedef {{ order: Int32Array, rank: Int32Array, owner: Int32Array, low: Int32Array, high: Int32Array }} FunctionRanges
 */

/** Ranges of functions, by the nodes of samples. @type {WeakMap<Int32Array, FunctionRanges>} */
const FUNCTION_RANGES = new WeakMap();

/**
 * Finds the samples of each function. The parts of a function have no sample in common.
 * @param {Page.Selected} selected
 * @param {Int32Array | null} numbers Number of each function, if several functions are one.
 * @param {number} functions Number of functions.
 * @returns {FunctionRanges}
 */
export function findRanges({ tree, node }, numbers, functions) {
  const { fn, end, count: nodes } = tree;
  const rank = new Int32Array(nodes + 1);
  for (let sample = 0; sample < node.length; sample++) rank[node[sample] + 1]++;
  for (let at = 0; at < nodes; at++) rank[at + 1] += rank[at];
  const next = rank.slice(0, nodes);
  const order = new Int32Array(node.length);
  for (let sample = 0; sample < node.length; sample++) order[next[node[sample]]++] = sample;
  // Nodes below `open` are descendants of a node of the same function. A part that begins where the
  // function's last part ends is joined with it.
  const open = new Int32Array(functions);
  const last = new Int32Array(functions).fill(-1);
  const [owner, low, high] = [0, 1, 2].map(() => new Int32Array(nodes));
  let parts = 0;
  for (let at = 0; at < nodes; at++) {
    if (fn[at] < 0) continue;
    const number = numbers === null ? fn[at] : numbers[fn[at]];
    if (at < open[number]) continue;
    open[number] = end[at];
    const from = rank[at];
    const to = rank[end[at]];
    if (from === to) continue;
    if (last[number] >= 0 && high[last[number]] === from) {
      high[last[number]] = to;
      continue;
    }
    owner[parts] = number;
    low[parts] = from;
    high[parts] = to;
    last[number] = parts++;
  }
  return { order, rank, owner: owner.slice(0, parts), low: low.slice(0, parts), high: high.slice(0, parts) };
}

/**
 * Adds up the time of all functions. `events` counts the intervals and CPU samples with the
 * function on the stack, of all states.
 * @param {Page.Selected} selected
 * @returns {FunctionTotals}
 */
export function functionTotals(selected) {
  const { tree, node, weight, count, data } = selected;
  const { state } = data.samples;
  const functions = data.functions.count;
  let ranges = FUNCTION_RANGES.get(node);
  if (!ranges) FUNCTION_RANGES.set(node, (ranges = findRanges(selected, null, functions)));
  const { order, rank, owner, low, high } = ranges;
  const self = new Float64Array((functions + 1) * STATES);
  const total = new Float64Array((functions + 1) * STATES);
  const events = new Float64Array(functions + 1);
  // Sums of the samples before each sample in the order, by state, and of their counts. Times are
  // whole ns, so differences of sums are exact.
  const width = STATES + 1;
  const before = new Float64Array((order.length + 1) * width);
  for (let at = 0; at < order.length; at++) {
    const sample = order[at];
    const from = at * width;
    for (let s = 0; s < width; s++) before[from + width + s] = before[from + s];
    const value = weight[sample];
    before[from + width + state[sample]] += value;
    before[from + width + STATES] += count[sample];
    const fn = tree.fn[node[sample]];
    self[(fn < 0 ? functions : fn) * STATES + state[sample]] += value;
    if (fn < 0) events[functions] += count[sample];
  }
  total.set(self.subarray(functions * STATES), functions * STATES);
  // Callers and callees of one stack often have the same samples, and stand together.
  let [lastLow, lastHigh] = [-1, -1];
  let d0 = 0, d1 = 0, d2 = 0, d3 = 0, events4 = 0;
  for (let part = 0; part < owner.length; part++) {
    if (low[part] !== lastLow || high[part] !== lastHigh) {
      lastLow = low[part];
      lastHigh = high[part];
      const from = lastLow * width;
      const to = lastHigh * width;
      d0 = before[to] - before[from];
      d1 = before[to + 1] - before[from + 1];
      d2 = before[to + 2] - before[from + 2];
      d3 = before[to + 3] - before[from + 3];
      events4 = before[to + 4] - before[from + 4];
    }
    const sum = owner[part] * STATES;
    if (d0 !== 0) total[sum] += d0;
    if (d1 !== 0) total[sum + 1] += d1;
    if (d2 !== 0) total[sum + 2] += d2;
    if (d3 !== 0) total[sum + 3] += d3;
    events[owner[part]] += events4;
  }
  /** @param {number} node */
  const nodeTotal = (node) => {
    const [from, to] = [rank[node] * width, rank[tree.end[node]] * width];
    let sum = 0;
    for (let s = 0; s < STATES; s++) sum += before[to + s] - before[from + s];
    return sum;
  };
  return { self, total, events, nodeTotal };
}

/**
 * Returns the time of the callers and callees of a function, heaviest first. The callers' times
 * add up to the function's total, and so do the callees' times with the function's own time. A
 * function that calls itself has the caller of its first frame and the callee of its last frame.
 * The function -1 stands for the root.
 * @param {Page.Tree} tree
 * @param {(node: number) => number} nodeTotal Time of a node.
 * @param {Uint8Array} isOne 1 for the function, or for several that count as one.
 * @returns {{ callers: [number, number][], callees: [number, number][] }}
 */
export function functionNeighbours(tree, nodeTotal, isOne) {
  /** @type {Map<number, number>} */
  const callers = new Map();
  /** @type {Map<number, number>} */
  const callees = new Map();
  /** @param {Map<number, number>} map @param {number} key @param {number} value */
  const add = (map, key, value) => map.set(key, (map.get(key) ?? 0) + value);
  /** @type {number[]} */
  const around = [];
  for (let at = 1; at < tree.count; at++) {
    if (isOne[tree.fn[at]] !== 1) continue;
    while (around.length > 0 && tree.end[around[around.length - 1]] <= at) around.pop();
    if (around.length === 0) {
      const caller = tree.fn[tree.parent[at]];
      add(callers, caller < 0 ? -1 : caller, nodeTotal(at));
    } else {
      // The outer frame of the function keeps the time that has no inner frame of it.
      const outer = around[around.length - 1];
      let below = at;
      while (tree.parent[below] !== outer) below = tree.parent[below];
      if (below !== at) add(callees, tree.fn[below], -nodeTotal(at));
    }
    around.push(at);
    for (let child = at + 1; child < tree.end[at]; child = tree.end[child]) {
      if (isOne[tree.fn[child]] !== 1) add(callees, tree.fn[child], nodeTotal(child));
    }
  }
  /** @param {Map<number, number>} map @returns {[number, number][]} */
  const heaviest = (map) =>
    [...map].filter(([, value]) => value > 0).sort((one, other) => other[1] - one[1] || one[0] - other[0]);
  return { callers: heaviest(callers), callees: heaviest(callees) };
}

/**
 * Body of a table of which only the visible rows are in the document. All rows have one height.
 * The first cell of a row has a button; one of them takes part in the order of Tab, and the arrow
 * keys lead to the others.
 */
export class VirtualRows {
  /**
   * @param {HTMLElement} scroller Element that scrolls the table.
   * @param {HTMLTableElement} table
   * @param {number} columns
   * @param {(index: number) => (Node | string)[]} cells Returns the contents of a row's cells. The
   *   first is its button.
   * @param {(index: number) => void} open Opens a row.
   */
  constructor(scroller, table, columns, cells, open) {
    this.scroller = scroller;
    this.table = table;
    this.columns = columns;
    this.cells = cells;
    this.open = open;
    this.count = 0;
    this.active = 0;
    this.rowHeight = 26;
    /** Height of the visible part below the head, in pixels. */
    this.height = 0;
    this.from = -1;
    this.to = -1;
    this.body = element("tbody");
    this.above = element("td", { colspan: columns });
    this.below = element("td", { colspan: columns });
    this.aboveRow = element("tr", { "aria-hidden": "true", class: "spacer" }, this.above);
    this.belowRow = element("tr", { "aria-hidden": "true", class: "spacer" }, this.below);
    table.append(this.body);
    scroller.addEventListener("scroll", () => this.show(false), { passive: true });
    new ResizeObserver(() => {
      this.measure();
      this.show(false);
    }).observe(scroller);
    this.body.addEventListener("keydown", (event) => this.press(event));
    this.body.addEventListener("focusin", (event) => {
      const row = /** @type {HTMLElement} */ (event.target).closest("tr");
      if (row?.dataset.row !== undefined) this.active = Number(row.dataset.row);
    });
    this.body.addEventListener("click", (event) => {
      const row = /** @type {HTMLElement} */ (event.target).closest("tr");
      if (row?.dataset.row === undefined) return;
      this.active = Number(row.dataset.row);
      this.open(this.active);
    });
  }

  /**
   * Sets the number of rows, and draws them anew.
   * @param {number} count
   */
  reset(count) {
    this.count = count;
    this.active = Math.min(this.active, Math.max(0, count - 1));
    this.table.setAttribute("aria-rowcount", String(count + 1));
    this.show(true);
  }

  /**
   * Draws the visible rows.
   * @param {boolean} anew Whether rows may have changed.
   */
  show(anew) {
    if (this.height === 0) this.measure();
    const { height } = this;
    const first = Math.floor(this.scroller.scrollTop / this.rowHeight);
    const from = Math.max(0, Math.min(first - 4, this.count - 1));
    const to = Math.min(this.count, first + Math.ceil(height / this.rowHeight) + 4);
    if (!anew && from === this.from && to === this.to) return;
    this.from = from;
    this.to = to;
    const hadFocus = this.body.contains(document.activeElement);
    if (hadFocus) this.active = Math.max(from, Math.min(this.active, to - 1));
    this.above.style.height = `${from * this.rowHeight}px`;
    this.below.style.height = `${Math.max(0, this.count - to) * this.rowHeight}px`;
    const rows = [];
    for (let index = from; index < to; index++) rows.push(this.row(index));
    this.body.replaceChildren(this.aboveRow, ...rows, this.belowRow);
    if (hadFocus) this.buttonOf(this.active)?.focus({ preventScroll: true });
  }

  /** Measures the visible part and the rows. Doing so at each change would cost a layout each. */
  measure() {
    const head = this.table.tHead?.offsetHeight ?? 0;
    this.height = Math.max(0, this.scroller.clientHeight - head);
    const real = this.body.querySelector("tr[data-row]")?.getBoundingClientRect().height ?? 0;
    if (real === 0 || Math.abs(real - this.rowHeight) <= 0.1) return;
    this.rowHeight = real;
    this.show(true);
  }

  /** @param {number} index @returns {HTMLElement} */
  row(index) {
    const cells = this.cells(index);
    const head = element("th", { scope: "row" }, cells[0]);
    const row = element("tr", { "aria-rowindex": index + 2, "data-row": index }, head);
    for (const cell of cells.slice(1)) row.append(element("td", {}, cell));
    const first = row.querySelector("button");
    if (first) first.tabIndex = index === this.active || (index === this.from && !this.isActiveShown()) ? 0 : -1;
    return row;
  }

  isActiveShown() {
    return this.active >= this.from && this.active < this.to;
  }

  /** @param {number} index @returns {HTMLButtonElement | null} */
  buttonOf(index) {
    return this.body.querySelector(`tr[data-row="${index}"] button`);
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.rowHeight) - 2);
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (!Object.hasOwn(steps, event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    this.goTo(this.active + steps[event.key]);
  }

  /**
   * Scrolls to a row and gives it the focus.
   * @param {number} index
   */
  goTo(index) {
    this.active = Math.max(0, Math.min(this.count - 1, index));
    const head = this.table.tHead?.offsetHeight ?? 0;
    const top = this.active * this.rowHeight;
    const room = this.scroller.clientHeight - head - this.rowHeight;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top > this.scroller.scrollTop + room) this.scroller.scrollTop = top - room;
    this.show(true);
    this.buttonOf(this.active)?.focus({ preventScroll: true });
  }
}

/**
 * Returns a header cell whose button sorts the table.
 * @param {string} text
 * @param {"ascending" | "descending" | ""} order
 * @param {() => void} act
 * @returns {HTMLElement}
 */
export function sortHeader(text, order, act) {
  const cell = element("th", { scope: "col", "aria-sort": order === "" ? false : order });
  const mark = order === "" ? "" : order === "ascending" ? " ▲" : " ▼";
  cell.append(button(text, act, { class: "sort" }));
  if (mark !== "") cell.append(element("span", { "aria-hidden": "true" }, mark));
  return cell;
}

/**
 * Returns a list of the functions of a stack, the last function first.
 * @param {string[]} names Root first.
 * @returns {HTMLElement}
 */
export function stackElement(names) {
  if (names.length === 0) return element("p", { class: "dim" }, "No frames.");
  const list = element("ol", { class: "stack" });
  for (const name of names.slice(-MOST_FRAMES).reverse()) list.append(element("li", {}, element("bdi", {}, name)));
  const rest = names.length - MOST_FRAMES;
  return rest <= 0 ? list : element("div", {}, list, element("p", { class: "dim" }, `${formatCount(rest)} more`));
}

/**
 * Returns the table view.
 * @returns {Page.View}
 */
export function makeTableView() {
  /** @type {Page.App} */
  let app;
  /** @type {Page.Selected | null} */
  let seen = null;
  /** @type {FunctionTotals} */
  let totals;
  /** States that the capture has. @type {number[]} */
  let states = [];
  /** Functions in the order of the table; `functions.count` is time without a stack. @type {Int32Array} */
  let order = new Int32Array(0);
  let shownAs = "";
  /** @type {VirtualRows} */
  let rows;
  const head = element("thead");
  const table = /** @type {HTMLTableElement} */ (element("table", { class: "functions" }));
  const scroller = element("div", { class: "scroller" });
  const line = element("p", { class: "dim", role: "status" });
  const detail = element("section", { class: "neighbours", "aria-label": "Callers and callees" });

  /** @param {number} fn @returns {string} */
  const nameOf = (fn) => {
    const { names, count } = app.data.functions;
    return fn < 0 || fn >= count ? "[no stack]" : names[fn];
  };
  /** @param {Float64Array} sums @param {number} fn @returns {number} */
  const all = (sums, fn) => {
    let sum = 0;
    for (let s = 0; s < STATES; s++) sum += sums[fn * STATES + s];
    return sum;
  };
  /** Returns the columns: key, group, title, value of a function. */
  const columns = () => {
    /** @type {{ key: string, title: string, value: (fn: number) => number }[]} */
    const found = [];
    for (const [key, sums] of /** @type {[string, Float64Array][]} */ ([["self", totals.self], ["total", totals.total]])) {
      if (states.length !== 1) found.push({ key, title: "all", value: (fn) => all(sums, fn) });
      for (const state of states) {
        const title = stateTitle(app.data, state);
        found.push({ key: `${key}-${STATE_NAMES[state]}`, title, value: (fn) => sums[fn * STATES + state] });
      }
    }
    found.push({ key: "count", title: "count", value: (fn) => totals.events[fn] });
    return found;
  };

  const sortBy = () => {
    const [key = "", direction = ""] = app.option("table.sort").split(".");
    const known = columns().find((column) => column.key === key);
    if (key === "name") return { key, up: direction !== "down", column: null };
    const column = known ?? columns()[0];
    return { key: column.key, up: direction === "up", column };
  };

  const drawHead = () => {
    const { key, up } = sortBy();
    /** @param {string} of @returns {"ascending" | "descending" | ""} */
    const orderOf = (of) => (of !== key ? "" : up ? "ascending" : "descending");
    /** @param {string} of @param {boolean} upFirst */
    const sort = (of, upFirst) => () => {
      const nextUp = of === key ? !up : upFirst;
      app.setOption("table.sort", `${of}.${nextUp ? "up" : "down"}`, "replace");
      const cell = head.querySelector("th[aria-sort] button");
      if (cell instanceof HTMLElement) cell.focus();
    };
    const groups = columns();
    const each = (groups.length - 1) / 2;
    const name = sortHeader("Function", orderOf("name"), sort("name", true));
    name.setAttribute("rowspan", "2");
    const count = sortHeader("Count", orderOf("count"), sort("count", false));
    count.setAttribute("rowspan", "2");
    const top = element("tr", {}, name,
      element("th", { scope: "colgroup", colspan: each }, "Self"),
      element("th", { scope: "colgroup", colspan: each }, "Total"), count);
    const below = element("tr");
    for (const column of groups.slice(0, -1)) {
      const cell = sortHeader(column.title, orderOf(column.key), sort(column.key, false));
      cell.querySelector("button")?.setAttribute("aria-label",
        `${column.key.startsWith("self") ? "Self" : "Total"}, ${column.title}`);
      below.append(cell);
    }
    head.replaceChildren(top, below);
  };

  const arrange = () => {
    const { functions } = app.data;
    const matches = app.state.search === "" ? null : makeMatcher(app.state.search);
    const found = [];
    let any = 0;
    for (let fn = 0; fn <= functions.count; fn++) {
      if (all(totals.total, fn) === 0 && totals.events[fn] === 0) continue;
      any++;
      if (!matches || matches(nameOf(fn))) found.push(fn);
    }
    const { column, up } = sortBy();
    if (column) {
      const values = new Float64Array(functions.count + 1);
      for (const fn of found) values[fn] = column.value(fn);
      found.sort((one, other) => (up ? values[one] - values[other] : values[other] - values[one]) || one - other);
    } else {
      /** @param {string} one @param {string} other */
      const compare = (one, other) => (one < other ? -1 : one > other ? 1 : 0);
      found.sort((one, other) => (up ? 1 : -1) * compare(nameOf(one), nameOf(other)));
    }
    order = Int32Array.from(found);
    line.textContent = matches
      ? `${formatCount(found.length)} of ${formatCount(any)} functions match the search.`
      : `${formatCount(any)} functions. Self: the function is the last of the stack. Total: it is on the stack.`;
  };

  /** @param {number} index @returns {(Node | string)[]} */
  const cells = (index) => {
    const fn = order[index];
    const name = element("bdi", {}, nameOf(fn));
    const first = button("", () => {}, { class: "name", title: nameOf(fn) });
    first.append(name);
    const texts = columns().map((column) => {
      const value = column.value(fn);
      if (value === 0) return "";
      return column.key === "count" || app.data.unit === "events" ? formatCount(value) : app.value(value);
    });
    return [first, ...texts];
  };

  /** @param {number} fn */
  const choose = (fn) => app.setOption("table.function", nameOf(fn), "push");

  const drawDetail = () => {
    const chosen = app.option("table.function");
    // Functions of a program and of the kernel may have one name.
    const isOne = chosen === "" ? new Uint8Array(0) : functionsNamed(app.data.functions, chosen);
    const fn = isOne.indexOf(1);
    detail.hidden = fn < 0;
    if (fn < 0) {
      detail.replaceChildren();
      return;
    }
    const { tree } = app.selected;
    const { callers, callees } = functionNeighbours(tree, totals.nodeTotal, isOne);
    const total = callers.reduce((sum, [, value]) => sum + value, 0);
    const self = totals.self.reduce((sum, value, at) => sum + (isOne[Math.floor(at / STATES)] === 1 ? value : 0), 0);
    /** @param {string} title @param {[number, number][]} list @param {string} none */
    const neighbours = (title, list, none) => {
      const body = element("tbody");
      for (const [other, value] of list.slice(0, MOST_NEIGHBOURS)) {
        const name = other < 0
          ? element("span", { class: "dim" }, "[root]")
          : button("", () => choose(other), { class: "name", title: nameOf(other) });
        if (other >= 0) name.append(element("bdi", {}, nameOf(other)));
        body.append(element("tr", {}, element("th", { scope: "row" }, name),
          element("td", {}, app.value(value)), element("td", {}, formatShare(value, total))));
      }
      const rest = list.length - MOST_NEIGHBOURS;
      if (rest > 0) body.append(element("tr", {}, element("td", { colspan: 3, class: "dim" }, `${formatCount(rest)} more`)));
      if (list.length === 0) body.append(element("tr", {}, element("td", { colspan: 3, class: "dim" }, none)));
      return element("table", {}, element("caption", {}, title), body);
    };
    const actions = element("div", { class: "actions" },
      button("Only stacks with it", () => app.addFilter({ kind: "only", name: chosen })),
      button("Hide stacks with it", () => app.addFilter({ kind: "without", name: chosen })),
      button("Pivot in the flame graph", () => app.setState({ view: "flame", pivot: chosen }, "push")),
      button("Close", () => {
        app.setOption("table.function", "", "push");
        rows.goTo(rows.active);
      }));
    const kind = app.data.functions.modules[fn];
    detail.replaceChildren(
      element("h2", {}, element("bdi", {}, chosen)),
      element("p", {}, `Total ${app.value(total)}, ${formatShare(total, app.selected.shown)} of what is shown; `
        + `self ${app.value(self)}.${kind === "" ? "" : ` In ${kind}.`}`),
      actions,
      neighbours("Callers", callers, "Nothing called it."),
      neighbours("Callees", callees, "It called nothing."));
  };

  return {
    id: "table",
    title: "Table",
    isAvailable: () => true,
    mount(root, given) {
      app = given;
      const has = new Set(app.data.samples.state.subarray(0, app.data.samples.measured));
      states = [1, 2, 3, 0].filter((s) => has.has(s));
      if (states.length === 0) states = [0];
      table.append(element("caption", { class: "unseen" }, "Functions with their time in each state"), head);
      scroller.append(table);
      root.append(line, element("div", { class: "table-and-detail" }, scroller, detail));
      scroller.addEventListener("contextmenu", (event) => {
        const row = /** @type {HTMLElement} */ (event.target).closest("tr");
        if (row?.dataset.row === undefined) return;
        const fn = order[Number(row.dataset.row)];
        if (fn >= app.data.functions.count) return;
        event.preventDefault();
        // The Menu key gives no place.
        const box = row.getBoundingClientRect();
        const byKey = event.clientX === 0 && event.clientY === 0;
        app.functionMenu(byKey ? box.left + 20 : event.clientX, byKey ? box.bottom : event.clientY, fn, "");
      });
    },
    update(given) {
      app = given;
      const { selected, state } = app;
      const key = [state.search, app.option("table.sort")].join("\n");
      const isNew = selected !== seen;
      if (isNew) {
        totals = functionTotals(selected);
        seen = selected;
      }
      if (isNew || key !== shownAs) {
        shownAs = key;
        drawHead();
        arrange();
        const width = columns().length + 1;
        rows ??= new VirtualRows(scroller, table, width, cells, (index) => {
          if (order[index] < app.data.functions.count) choose(order[index]);
        });
        rows.reset(order.length);
      }
      drawDetail();
    },
    stepMatch(direction) {
      if (app.state.search !== "" && order.length > 0) rows.goTo((rows.active + direction + order.length) % order.length);
    },
    matchPlace(given) {
      if (given.state.search === "" || order.length === 0) return "";
      return `${formatCount(rows.active + 1)}/${formatCount(order.length)}`;
    },
    drawn: () => totals,
    keys: [
      ["↑ ↓ Page Home End", "go through the rows of the table"],
      ["Enter", "show callers and callees of the function"],
    ],
  };
}
