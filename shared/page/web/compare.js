// Comparison of two captures: changes of functions per second, and which of them may be chance.
// The arithmetic is that of `systemscope diff` (shared/profile/src/diff.rs).
import { element, svgElement, button, styleVariable } from "./dom.js";
import { formatCount } from "./format.js";
import { makeMatcher } from "./search.js";
import { VirtualRows, findRanges, sortHeader, stateTitle } from "./table.js";

/** Number of standard deviations beyond which a change is significant at the level of 99 %. */
export const CHANGE_LEVEL = 2.576;

/** Unit of `Samples.squares` in ns². */
const SQUARE_UNIT = 2 ** 20;

/**
 * Change of a function's time per second in one state.
 * @typedef {{ name: string, state: number, before: number, after: number, difference: number,
 *   deviation: number, isSignificant: boolean, isNew: boolean, isGone: boolean }} Change
 */

/**
 * @typedef {import("./table.js").FunctionRanges} FunctionRanges
 * Sums by function, with their variances and the numbers of their intervals or samples.
 * @typedef {{ value: Float64Array, variance: Float64Array, events: Float64Array }} ChangeTotals
 */

/**
 * Returns why two captures cannot be compared, or "".
 * @param {Page.Data} before
 * @param {Page.Data} after
 * @returns {string}
 */
export function whyNotComparable(before, after) {
  if (before.meta.lengthNs === 0 || after.meta.lengthNs === 0) {
    return "One of the captures does not say how long it measured.";
  }
  if (before.unit !== after.unit) return "One capture counts samples, the other time.";
  if (before.eventName !== after.eventName) {
    return `One capture samples ${before.eventName}, the other ${after.eventName}.`;
  }
  const [one, other] = [before.meta.lengths, after.meta.lengths];
  if ((one === null) !== (other === null)) return "One capture has time off the CPU, the other has none.";
  if (one && other && (one.least !== other.least || one.shortAreSampled !== other.shortAreSampled)) {
    return `One capture has waits from ${one.least / 1000} µs on, the other from ${other.least / 1000} µs on.`;
  }
  /** @param {Page.Data} data */
  const states = (data) => data.samples.state.subarray(0, data.samples.measured).some((state) => state !== 0);
  const any = before.samples.measured > 0 && after.samples.measured > 0;
  return any && states(before) !== states(after) ? "One capture tells states apart, the other does not." : "";
}

/**
 * Numbers of function names over two captures. Frames of one name are one function, also if their
 * kinds differ.
 * @typedef {{ names: string[], numbers: [Int32Array, Int32Array] }} SharedNames
 */

/** Names of two captures, by the later one. @type {WeakMap<Page.Data, SharedNames>} */
const SHARED_NAMES = new WeakMap();

/**
 * @param {Page.Data} before
 * @param {Page.Data} after
 * @returns {SharedNames}
 */
function shareNames(before, after) {
  const known = SHARED_NAMES.get(after);
  if (known) return known;
  /** @type {Map<string, number>} */
  const found = new Map();
  /** @param {Page.Data} data */
  const numbersOf = (data) => Int32Array.from(data.functions.names, (name) => {
    const number = found.get(name) ?? found.size;
    found.set(name, number);
    return number;
  });
  /** @type {SharedNames} */
  const shared = { numbers: [numbersOf(before), numbersOf(after)], names: [] };
  shared.names = [...found.keys()];
  SHARED_NAMES.set(after, shared);
  return shared;
}

/** Ranges of shared functions, by the nodes of samples. @type {WeakMap<Int32Array, FunctionRanges>} */
const CHANGE_RANGES = new WeakMap();

/**
 * Adds up the time, the variance and the events of each function in one state.
 * @param {Page.Selected} selected
 * @param {number} state
 * @param {Int32Array} numbers
 * @param {number} functions Number of functions in `numbers`.
 * @returns {ChangeTotals}
 */
function changeTotals(selected, state, numbers, functions) {
  const { data, node, weight, count } = selected;
  const { samples, meta } = data;
  /** @type {ChangeTotals} */
  const totals = { value: new Float64Array(functions), variance: new Float64Array(functions), events: new Float64Array(functions) };
  let ranges = CHANGE_RANGES.get(node);
  if (!ranges) CHANGE_RANGES.set(node, (ranges = findRanges(selected, numbers, functions)));
  const { order, owner, low, high } = ranges;
  // Sums of the samples before each sample in the order. Variances are not whole numbers, and small
  // ones must not get lost beside large ones: `rest` has the rounding errors of their sums.
  const [value, variance, rest, events] = [0, 1, 2, 3].map(() => new Float64Array(order.length + 1));
  // Profiles of CPU samples alone have no states; their samples count as running.
  const percent = state === 1 && meta.lengths === null ? Math.max(meta.bursts[0], meta.bursts[1]) : meta.bursts[state];
  const bursts = Math.max(1, percent / 100);
  let any = false;
  for (let at = 0; at < order.length; at++) {
    const sample = order[at];
    value[at + 1] = value[at];
    variance[at + 1] = variance[at];
    rest[at + 1] = rest[at];
    events[at + 1] = events[at];
    if (samples.state[sample] !== state || (weight[sample] === 0 && count[sample] === 0)) continue;
    any = true;
    const whole = samples.value[sample];
    // A part of the time of a sample has this part of its variance.
    const share = whole > 0 ? weight[sample] / whole : 1;
    let byChance;
    if (samples.squares[sample] > 0) byChance = samples.squares[sample] * SQUARE_UNIT * meta.each * meta.each * share;
    else if (samples.events[sample] > 0) byChance = ((whole * whole) / samples.events[sample]) * share;
    else byChance = weight[sample] * (meta.lengths?.least ?? 0);
    byChance *= bursts;
    value[at + 1] += weight[sample];
    events[at + 1] += Math.max(1, count[sample]);
    const sum = variance[at] + byChance;
    const part = sum - variance[at];
    rest[at + 1] += variance[at] - (sum - part) + (byChance - part);
    variance[at + 1] = sum;
  }
  if (!any) return totals;
  for (let part = 0; part < owner.length; part++) {
    const [from, to, fn] = [low[part], high[part], owner[part]];
    totals.value[fn] += value[to] - value[from];
    totals.variance[fn] += variance[to] - variance[from] + (rest[to] - rest[from]);
    totals.events[fn] += events[to] - events[from];
  }
  return totals;
}

/**
 * Returns the changes of all functions. Significant changes come first, the largest first.
 * @param {Page.Selected} before
 * @param {Page.Selected} after
 * @returns {Change[]}
 */
export function findChanges(before, after) {
  /** @type {Change[]} */
  const changes = [];
  const seconds = [before.windowNs / 1e9, after.windowNs / 1e9];
  const { names, numbers } = shareNames(before.data, after.data);
  for (let state = 0; state < 4; state++) {
    const [old, now] = [before, after].map((selected, side) => changeTotals(selected, state, numbers[side], names.length));
    names.forEach((name, at) => {
      const events = old.events[at] + now.events[at];
      if (events === 0) return;
      // One more event on each side compensates for the skew of a few events.
      const oneMore = (old.variance[at] + now.variance[at]) / Math.max(1, events);
      const deviation = Math.hypot(
        Math.sqrt(old.variance[at] + oneMore) / seconds[0], Math.sqrt(now.variance[at] + oneMore) / seconds[1]);
      const rates = [old.value[at] / seconds[0], now.value[at] / seconds[1]];
      const difference = rates[1] - rates[0];
      changes.push({
        name, state, before: rates[0], after: rates[1], difference, deviation,
        isSignificant: Math.abs(difference) > CHANGE_LEVEL * deviation,
        isNew: old.events[at] === 0, isGone: now.events[at] === 0,
      });
    });
  }
  return changes.sort((one, other) => Number(other.isSignificant) - Number(one.isSignificant)
    || Math.abs(other.difference) - Math.abs(one.difference));
}

/**
 * Mixes two colours of the form `#rrggbb`.
 * @param {string} one
 * @param {string} other
 * @param {number} share Share of `other`, 0 to 1.
 * @returns {string}
 */
export function mixColours(one, other, share) {
  /** @param {string} colour */
  const parts = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  if (!/^#[0-9a-f]{6}$/i.test(one) || !/^#[0-9a-f]{6}$/i.test(other)) return share < 0.5 ? one : other;
  const [from, to] = [parts(one), parts(other)];
  const mixed = from.map((part, at) => Math.round(part + (to[at] - part) * share).toString(16).padStart(2, "0"));
  return `#${mixed.join("")}`;
}

const CHANGE_LEGEND = "Orange: more time per second than before. Blue: less. Stronger colours are larger changes. "
  + "Grey: chance may have made the change.";

/**
 * Returns the view of changes.
 * @returns {Page.View}
 */
export function makeCompareView() {
  /** @type {Page.App} */
  let app;
  /** @type {[Page.Selected | null, Page.Selected | null]} */
  let seen = [null, null];
  /** @type {Change[]} */
  let changes = [];
  /** The changes that are listed. @type {Change[] | null} */
  let shown = null;
  /** @type {Change[]} */
  let listed = [];
  let shownAs = "";
  /** Largest change, for the bars. */
  let largest = 1;
  /** @type {VirtualRows | null} */
  let rows = null;
  const head = element("thead");
  const table = /** @type {HTMLTableElement} */ (element("table", { class: "changes" }));
  const scroller = element("div", { class: "scroller" });
  const intro = element("p");
  const line = element("p", { class: "dim", role: "status" });
  const show = /** @type {HTMLSelectElement} */ (element("select"));
  const colour = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox" }));
  /** @type {[string, string, (change: Change) => boolean][]} */
  const choices = [
    ["", "all changes", () => true],
    ["sure", "changes beyond chance", (change) => change.isSignificant],
    ["more", "more time", (change) => change.difference > 0],
    ["less", "less time", (change) => change.difference < 0],
    ["new", "new functions", (change) => change.isNew],
    ["gone", "vanished functions", (change) => change.isGone],
  ];
  const COLUMNS = ["Function", "State", "Change per second", "± (99 %)", "Before", "After", "Remark"];

  /** @param {number} value */
  const rate = (value) => `${app.value(value)}/s`;
  /** @param {number} value */
  const signed = (value) => (value === 0 ? "0" : `${value < 0 ? "−" : "+"}${rate(Math.abs(value))}`);

  /**
   * Finds the changes if the selection is a new one, and returns whether it is.
   * @param {Page.Selected} before
   * @param {Page.Selected} after
   */
  const findNew = (before, after) => {
    if (after === seen[0] && before === seen[1]) return false;
    seen = [after, before];
    changes = findChanges(before, after);
    largest = changes.reduce((most, change) => Math.max(most, Math.abs(change.difference)), 0) || 1;
    return true;
  };

  const drawHead = () => {
    const [key, direction] = app.option("compare.sort").split(".");
    const row = element("tr");
    const keys = ["name", "", "change", "", "before", "after", ""];
    COLUMNS.forEach((title, at) => {
      if (keys[at] === "") {
        row.append(element("th", { scope: "col" }, title));
        return;
      }
      const isUp = direction === "up";
      row.append(sortHeader(title, keys[at] !== key ? "" : isUp ? "ascending" : "descending", () => {
        const next = keys[at] === key ? !isUp : keys[at] === "name";
        app.setOption("compare.sort", `${keys[at]}.${next ? "up" : "down"}`, "replace");
        const cell = head.querySelector("th[aria-sort] button");
        if (cell instanceof HTMLElement) cell.focus();
      }));
    });
    head.replaceChildren(row);
  };

  const arrange = () => {
    const matches = app.state.search === "" ? null : makeMatcher(app.state.search);
    const chosen = choices.find(([key]) => key === app.option("compare.show")) ?? choices[0];
    listed = changes.filter((change) => chosen[2](change) && (!matches || matches(change.name)));
    const [key, direction] = app.option("compare.sort").split(".");
    const up = direction === "up" ? 1 : -1;
    if (key === "name") listed.sort((one, other) => up * (one.name < other.name ? -1 : one.name > other.name ? 1 : 0));
    if (key === "change") listed.sort((one, other) => up * (one.difference - other.difference));
    if (key === "before") listed.sort((one, other) => up * (one.before - other.before));
    if (key === "after") listed.sort((one, other) => up * (one.after - other.after));
    const sure = changes.filter((change) => change.isSignificant).length;
    line.textContent = `${formatCount(listed.length)} of ${formatCount(changes.length)} rows are listed. `
      + `${formatCount(sure)} ${sure === 1 ? "change is" : "changes are"} beyond chance, at a level of 99 %. `
      + "A row is the time in which a function was on the stack, in one state.";
  };

  /** @param {number} index @returns {(Node | string)[]} */
  const cells = (index) => {
    const change = listed[index];
    const name = button("", () => {}, { class: "name", title: change.name });
    name.append(element("bdi", {}, change.name));
    const size = (Math.abs(change.difference) / largest) * 30;
    const bar = svgElement("svg", { class: "change-bar", width: 61, height: 10, "aria-hidden": "true" },
      svgElement("rect", { x: 30, width: 1, height: 10, class: "change-middle" }),
      svgElement("rect", {
        x: (change.difference < 0 ? 30 - size : 31).toFixed(2), width: size.toFixed(2), height: 10,
        class: change.isSignificant ? (change.difference < 0 ? "change-less" : "change-more") : "change-chance",
      }));
    const amount = element("span", {}, bar, ` ${signed(change.difference)}`);
    const remarks = [];
    if (change.isNew) remarks.push("new");
    if (change.isGone) remarks.push("vanished");
    if (!change.isSignificant) remarks.push("may be chance");
    return [name, stateTitle(app.data, change.state), amount, rate(CHANGE_LEVEL * change.deviation), rate(change.before),
      rate(change.after), remarks.join(", ")];
  };

  /** @param {number} index */
  const open = (index) => {
    const change = listed[index];
    if (change.isGone) app.say(`${change.name} is only in the earlier capture.`);
    else app.setState({ view: "flame", search: change.name }, "push");
  };

  const applyColours = () => {
    /** @type {Map<string, { difference: number, variance: number }>} */
    const sums = new Map();
    for (const change of changes) {
      const sum = sums.get(change.name) ?? { difference: 0, variance: 0 };
      sum.difference += change.difference;
      sum.variance += change.deviation ** 2;
      sums.set(change.name, sum);
    }
    const { names } = app.data.functions;
    const neutral = styleVariable("--same");
    const [more, less] = [styleVariable("--more"), styleVariable("--less")];
    app.colouring = {
      legend: CHANGE_LEGEND,
      colour(fn) {
        const sum = sums.get(names[fn]);
        if (!sum || Math.abs(sum.difference) <= CHANGE_LEVEL * Math.sqrt(sum.variance)) return neutral;
        const share = 0.35 + 0.65 * Math.min(1, Math.abs(sum.difference) / largest);
        return mixColours(neutral, sum.difference > 0 ? more : less, share);
      },
      describe(fn) {
        const sum = sums.get(names[fn]);
        if (!sum) return "not in the comparison";
        const chance = CHANGE_LEVEL * Math.sqrt(sum.variance);
        return `${signed(sum.difference)} ± ${rate(chance)}${Math.abs(sum.difference) > chance ? "" : ", may be chance"}`;
      },
    };
  };

  return {
    id: "compare",
    title: "Comparison",
    isAvailable: (of) => of.before !== null,
    mount(root, given) {
      app = given;
      for (const [key, words] of choices) show.append(element("option", { value: key }, words));
      show.addEventListener("change", () => app.setOption("compare.show", show.value, "push"));
      colour.addEventListener("change", () => app.setOption("compare.colour", colour.checked ? "change" : "", "push"));
      table.append(element("caption", { class: "unseen" }, "Changes of functions, per second of the window"), head);
      scroller.append(table);
      root.append(intro, element("div", { class: "actions" }, element("label", {}, "Show ", show),
        element("label", {}, colour, " Colour the flame graph by change")),
        element("p", {}, CHANGE_LEGEND), line, scroller);
    },
    prepare(given) {
      app = given;
      const { before, data, selected, selectedBefore } = app;
      const isWanted = app.option("compare.colour") === "change";
      if (!isWanted || !before || !selectedBefore || whyNotComparable(before, data) !== "") {
        app.colouring = null;
        return;
      }
      const isNew = findNew(selectedBefore, selected);
      if (isNew || app.colouring === null) applyColours();
    },
    update(given) {
      app = given;
      const { before, data, selected, selectedBefore } = app;
      if (!before || !selectedBefore) return;
      const why = whyNotComparable(before, data);
      scroller.hidden = why !== "";
      if (why !== "") {
        intro.textContent = `${why} So the captures cannot be compared.`;
        return;
      }
      const isNew = findNew(selectedBefore, selected) || shown !== changes;
      if (isNew) {
        shown = changes;
        /** @param {Page.Data} of */
        const described = (of) => `${(of.meta.lengthNs / 1e9).toFixed(3)} s of ${of.meta.targets} on ${of.meta.host}`;
        intro.textContent = `Before: ${described(before)}. After: ${described(data)}.`
          + (app.state.range ? " The time range applies to the later capture only." : "");
      }
      colour.checked = app.option("compare.colour") === "change";
      const key = [app.state.search, app.option("compare.sort"), app.option("compare.show")].join("\n");
      if (isNew || key !== shownAs) {
        shownAs = key;
        show.value = app.option("compare.show");
        drawHead();
        arrange();
        rows ??= new VirtualRows(scroller, table, COLUMNS.length, cells, open);
        rows.reset(listed.length);
      }
    },
    keys: [["↑ ↓ Page Home End", "go through the changes"], ["Enter", "show the function in the flame graph"]],
  };
}
