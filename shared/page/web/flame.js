// The flame graph: boxes of functions on a canvas, as wide as their time.

import { button, element, styleVariable } from "./dom.js";
import { cutText, formatShare, REASON_NAMES, STATE_NAMES } from "./format.js";
import { kindOf, kindsIn, kindVariable, languageText } from "./kinds.js";
import { matchFunctions } from "./search.js";
import { calleesOf, CallersTree, functionsNamed, groupTree, IDLE_STATE, NO_REASON, PlainTree, TreeSums } from "./tree.js";

/** Height of a row in px. */
const ROW = 19;
/** Least width of a box in px; smaller ones share a grey block. */
const LEAST_WIDTH = 1;
/** Least width in px of a box that shows the shares of its states; narrower boxes have one colour. */
const LEAST_SHARES = 3;
/** Least width in px of a box with text. */
const LEAST_TEXT = 28;
const PADDING = 4;
/** Height in px of the strip at the bottom of a box, which has the colour of the kind of frame. */
const STRIP = 3;
/** Share of the paper in colours of boxes that are less important. */
const FADED = 0.72;
/** Change of lightness by name, so that neighbours differ. */
const VARIANTS = [-0.045, 0, 0.035];
/** Order of states within a box. */
const STATE_ORDER = [1, 2, 3, 0, IDLE_STATE];
const STATE_TEXTS = ["unknown state", "running", "runnable", "blocked", "idle"];
/** Most matches that can be visited. */
const MOST_MATCHES = 2000;
/** Children that the tree adds at a time. */
const TREE_PAGE = 50;
const SPLITS = [["", "States together"], ["state", "States apart"], ["reason", "Reasons apart"]];
const GROUPS = [["", "All threads merged"], ["name", "By thread name"], ["process", "By process"], ["thread", "By thread"]];

/**
 * A tree that is drawn away from the first row, or towards it (callers of the pivot).
 * @typedef {{ tree: Page.DrawnTree, isAbove: boolean, zoom: number, option: string }} FlamePart
 */
/**
 * Boxes of a row. A node below 0 is the grey block of smaller children of node `-1 - node`.
 * @typedef {{ part: FlamePart, isFaded: boolean, left: number[], right: number[], node: number[] }} FlameRow
 */
/** @typedef {{ part: FlamePart, node: number }} FlamePlace */
/** @typedef {{ fill: string, faded: string, isDark: boolean }} FlameColour */

/** @returns {Page.View} */
export function makeFlameView() {
  /** @type {FlameGraph | null} */
  let graph = null;
  return {
    id: "flame",
    title: "Flame graph",
    isAvailable: (app) => app.data.samples.measured > 0,
    mount(root, app) {
      graph = new FlameGraph(root, app);
    },
    update: () => graph?.update(),
    key: (event) => graph?.key(event) ?? false,
    stepMatch: (direction) => graph?.stepMatch(direction),
    matchPlace: () => graph?.matchPlace() ?? "",
    drawn: () => graph,
    keys: [
      ["← → ↑ ↓", "go to a sibling, caller or callee"],
      ["Enter  w", "zoom to the function"],
      ["0  s", "zoom out: completely, or to the caller"],
      ["p", "show callers and callees of the function"],
      ["o  x  h", "only stacks with it, no stacks with it, hide its frames"],
      ["c  C", "copy the name, or the stack as folded text"],
      ["i", "turn the graph: roots at the top or at the bottom"],
      ["v", "invert: start at the leaves"],
      [",  .", "go to the previous or the next thread"],
      ["t", "show the graph as a tree"],
      ["Menu  m", "open the menu of the function"],
    ],
  };
}

/** The view of the flame graph. */
class FlameGraph {
  /**
   * @param {HTMLElement} root
   * @param {Page.App} app
   */
  constructor(root, app) {
    this.app = app;
    const { data } = app;
    /** State of each sample, with idle time as a state of its own. */
    this.states = data.samples.state.map((state, row) => (state === 3 && data.samples.idle[row] === 1 ? IDLE_STATE : state));
    /** Reason of each sample that is blocked with work. */
    this.reasons = data.samples.reason.map((reason, row) => (this.states[row] === 3 ? reason : NO_REASON));
    /** Texts of the roots of groups. @type {string[]} */
    this.labels = [];
    /** @type {FlamePart[]} */
    this.parts = [];
    /** @type {TreeSums | null} */
    this.sums = null;
    /** @type {FlameRow[]} */
    this.rows = [];
    /** @type {FlamePlace | null} */
    this.focus = null;
    /** @type {FlamePlace[]} */
    this.matches = [];
    this.matchAt = -1;
    /** Whether the search matches each function. @type {Uint8Array} */
    this.matched = new Uint8Array(data.functions.count);
    /** What the parts were built from. @type {unknown[]} */
    this.built = [];
    this.searched = "";
    this.theme = "";
    /** @type {Page.Colouring | null} */
    this.colouring = null;
    this.width = 0;
    this.isDue = false;
    /** @type {Map<string, FlameColour[]>} */
    this.colours = new Map();
    this.variants = Uint8Array.from(data.functions.names, (name) => nameHash(name) % VARIANTS.length);
    /** Colours of the kinds of frames. @type {Map<string, string>} */
    this.kindColours = new Map();
    /** @type {CanvasPattern | null} */
    this.hatch = null;

    this.canvas = /** @type {HTMLCanvasElement} */ (
      element("canvas", { tabindex: 0, role: "application", "aria-label": "Flame graph. Arrow keys go from function to function; t shows it as a tree." })
    );
    this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d", { alpha: false }));
    this.spacer = element("div", { class: "flame-spacer" }, this.canvas);
    this.scroller = element("div", { class: "flame-scroller" }, this.spacer);
    this.tip = element("div", { class: "tip", "aria-hidden": "true", hidden: true });
    this.detail = element("div", { class: "flame-detail" });
    this.legend = element("ul", { class: "legend", "aria-label": "Colours" });
    this.treePanel = element("div", { class: "flame-tree", hidden: true });
    this.toolbar = this.makeToolbar();
    const graph = element("div", { class: "flame-body" }, this.scroller, this.treePanel);
    root.append(this.toolbar, this.legend, graph, this.detail, this.tip);
    this.listen();
  }

  /** @returns {HTMLElement} */
  makeToolbar() {
    const { app } = this;
    const select = (/** @type {string} */ option, /** @type {string} */ label, /** @type {string[][]} */ choices) => {
      const field = /** @type {HTMLSelectElement} */ (element("select", { "aria-label": label }));
      for (const [value, text] of choices) field.append(element("option", { value }, text));
      field.addEventListener("change", () => this.setOptions({ [option]: field.value }, true));
      return field;
    };
    const toggle = (/** @type {string} */ text, /** @type {string} */ title, /** @type {() => void} */ act) => button(text, act, { title, "aria-pressed": "false" });
    this.group = select("flame.group", "Grouping", GROUPS);
    this.split = select("flame.split", "States", SPLITS);
    this.invert = toggle("Inverted", "Start at the leaves (v)", () => this.toggleOption("flame.invert", "yes", true));
    this.turn = toggle("Roots below", "Turn the graph: icicle or flame (i)", () => this.toggleOption("flame.roots", "below"));
    this.asTree = toggle("Tree", "Show the graph as a tree (t)", () => this.toggleOption("flame.tree", "yes"));
    this.reset = button("Zoom out", () => this.zoomOut(), { title: "Zoom out (0)" });
    this.more = button("⋯", () => this.openMenu(), { title: "Menu of the function (m)", "aria-label": "Menu of the function", "aria-haspopup": "menu" });
    this.threadName = element("span", { class: "thread-name" });
    const threads = element("span", { class: "stepper" },
      button("‹", () => this.stepThread(-1), { "aria-label": "Previous thread", title: "Previous thread ( , )" }),
      this.threadName,
      button("›", () => this.stepThread(1), { "aria-label": "Next thread", title: "Next thread ( . )" }),
    );
    threads.hidden = app.data.threads.length < 2;
    return element("div", { class: "toolbar" }, this.group, this.split, threads, this.invert, this.turn, this.asTree, this.reset, this.more);
  }

  listen() {
    const { canvas, scroller } = this;
    scroller.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.resize()).observe(scroller);
    canvas.addEventListener("mousemove", (event) => this.hover(event));
    canvas.addEventListener("mouseleave", () => (this.tip.hidden = true));
    canvas.addEventListener("click", (event) => {
      const place = this.placeAt(event);
      if (place !== null) this.zoomTo(place);
    });
    canvas.addEventListener("dblclick", () => {
      if (this.focus !== null) this.pivot(this.focus);
    });
    canvas.addEventListener("contextmenu", (event) => {
      event.preventDefault();
      // The Menu key has no place of its own.
      const place = event.button === 2 ? this.placeAt(event) : this.focus;
      if (place === null) return;
      this.setFocus(place);
      this.openMenu(event.clientX, event.clientY);
    });
    canvas.addEventListener("focus", () => {
      if (this.focus === null) this.setFocus({ part: this.parts[0], node: this.parts[0].zoom });
    });
    canvas.addEventListener("blur", () => this.draw());
  }

  /**
   * Changes options together. The zoom belongs to one tree, so another tree has none.
   * @param {Record<string, string>} changes
   * @param {boolean} isNewTree
   */
  setOptions(changes, isNewTree) {
    const options = new Map(this.app.state.options);
    if (isNewTree) {
      options.delete("flame.zoom");
      options.delete("flame.above");
    }
    for (const [name, value] of Object.entries(changes)) {
      if (value === "") options.delete(name);
      else options.set(name, value);
    }
    this.app.setState({ options }, isNewTree ? "push" : "replace");
  }

  /**
   * @param {string} option
   * @param {string} value
   * @param {boolean} [isNewTree]
   */
  toggleOption(option, value, isNewTree = false) {
    this.setOptions({ [option]: this.app.option(option) === value ? "" : value }, isNewTree);
  }

  /** Shows the state of the page. */
  update() {
    const { app } = this;
    const options = ["flame.group", "flame.split", "flame.invert"].map((name) => app.option(name));
    const built = [app.selected, app.state.pivot, ...options];
    const isNew = built.some((part, number) => part !== this.built[number]);
    if (isNew) {
      this.built = built;
      this.build();
      this.focus = null;
    }
    for (const part of this.parts) part.zoom = this.findNode(part.tree, app.option(part.option));
    if (isNew || this.searched !== app.state.search) this.findMatches();
    this.updateToolbar();
    this.readColours();
    if (isNew || this.colouring !== app.colouring) this.updateLegend();
    this.colouring = app.colouring;
    this.layOut();
    if (this.focus === null && isNew) this.setFocus({ part: this.parts[0], node: this.parts[0].zoom }, false);
    this.showDetail();
    this.updateTree(isNew);
  }

  updateToolbar() {
    const { app } = this;
    const isPivot = app.state.pivot !== "";
    /** @type {HTMLSelectElement} */ (this.group).value = app.option("flame.group");
    /** @type {HTMLSelectElement} */ (this.split).value = app.option("flame.split");
    const invert = /** @type {HTMLButtonElement} */ (this.invert);
    invert.disabled = isPivot;
    invert.setAttribute("aria-pressed", String(this.isInverted()));
    this.turn?.setAttribute("aria-pressed", String(this.isTurned()));
    this.asTree?.setAttribute("aria-pressed", String(app.option("flame.tree") !== ""));
    /** @type {HTMLButtonElement} */ (this.reset).disabled = this.parts.every((part) => part.zoom === 0);
    const { threads } = app.state;
    const one = threads.length === 1 ? app.data.threads.find((thread) => thread.key === threads[0]) : undefined;
    const text = one?.label ?? (threads.length === 0 ? "all threads" : `${threads.length} threads`);
    if (this.threadName !== undefined) this.threadName.textContent = text;
  }

  isInverted() {
    return this.app.option("flame.invert") !== "" && this.app.state.pivot === "";
  }

  /** @returns {boolean} Whether roots are at the bottom. */
  isTurned() {
    return this.app.option("flame.roots") === "below";
  }

  /** Builds the trees that the state asks for. */
  build() {
    const { app } = this;
    const { selected, data } = app;
    let { tree, node } = selected;
    this.labels = [];
    const group = this.groups();
    if (group !== null) ({ tree, node } = groupTree(tree, node, selected.weight, group.group, group.paths));
    const sums = new TreeSums(tree, node, selected.weight, this.states, this.reasons, this.sums);
    this.sums = sums;
    const main = { isAbove: false, zoom: 0, option: "flame.zoom" };
    if (app.state.pivot !== "") {
      const callees = calleesOf(tree, node, functionsNamed(data.functions, app.state.pivot));
      const below = new PlainTree(callees.tree, new TreeSums(callees.tree, callees.node, selected.weight, this.states, this.reasons));
      const above = new CallersTree(tree, callees.roots, sums, false);
      this.parts = [{ ...main, tree: below }, { tree: above, isAbove: true, zoom: 0, option: "flame.above" }];
    } else if (this.isInverted()) {
      const leaves = [];
      for (let at = 1; at < tree.count; at++) if (sums.allSelf(at) > 0) leaves.push(at);
      this.parts = [{ ...main, tree: new CallersTree(tree, Int32Array.from(leaves), sums, true) }];
    } else {
      this.parts = [{ ...main, tree: new PlainTree(tree, sums) }];
    }
  }

  /**
   * Returns the group of each sample, and the labels above each group; null without groups.
   * @returns {{ group: Int32Array, paths: number[][] } | null}
   */
  groups() {
    const { app, labels } = this;
    const { data, selected } = app;
    const by = app.option("flame.group");
    const split = app.option("flame.split");
    if (by === "" && split === "") return null;
    const { thread: threads, state: states, reason } = data.samples;
    const outer = data.threads.map((thread) => this.groupName(thread));
    /** @type {Map<string, number>} */
    const numbers = new Map();
    const label = (/** @type {string} */ text) => {
      let number = numbers.get(text);
      if (number === undefined) {
        number = labels.length;
        numbers.set(text, number);
        labels.push(text);
      }
      return number;
    };
    /** @type {Map<string, number>} */
    const groups = new Map();
    /** @type {{ path: string[], value: number, order: number, outer: string }[]} */
    const found = [];
    const group = new Int32Array(threads.length);
    /** @type {Map<string, number>} */
    const outerValues = new Map();
    for (let row = 0; row < group.length; row++) {
      const value = selected.weight[row];
      if (value === 0) continue;
      const its = outer[threads[row]];
      const state = this.states[row];
      const order = split === "" ? 0 : STATE_ORDER.indexOf(state) * 32 + (split === "reason" && states[row] === 3 ? reason[row] : 0);
      const key = `${order} ${its}`;
      let number = groups.get(key);
      if (number === undefined) {
        number = found.length;
        groups.set(key, number);
        const text = split === "reason" && states[row] === 3 ? `${STATE_TEXTS[state]}: ${REASON_NAMES[reason[row]]}` : STATE_TEXTS[state];
        found.push({ path: [...(by === "" ? [] : [its]), ...(split === "" ? [] : [`[${text}]`])], value: 0, order, outer: its });
      }
      found[number].value += value;
      outerValues.set(its, (outerValues.get(its) ?? 0) + value);
      group[row] = number;
    }
    // The heaviest outer group comes first; states have their fixed order.
    const order = found.map((_, number) => number).sort((one, other) => {
      const [a, b] = [found[one], found[other]];
      return (outerValues.get(b.outer) ?? 0) - (outerValues.get(a.outer) ?? 0) || (a.outer < b.outer ? -1 : a.outer > b.outer ? 1 : 0) || a.order - b.order;
    });
    const places = new Int32Array(order.length);
    order.forEach((number, place) => (places[number] = place));
    for (let row = 0; row < group.length; row++) if (selected.weight[row] > 0) group[row] = places[group[row]];
    return { group, paths: order.map((number) => found[number].path.map(label)) };
  }

  /**
   * Returns the name of a function, a group's root or the root.
   * @param {FlamePart} part
   * @param {number} node
   * @returns {string}
   */
  name(part, node) {
    const fn = part.tree.fn(node);
    if (fn >= 0) return this.app.data.functions.names[fn];
    if (fn <= -2) return this.labels[-2 - fn];
    return this.app.state.pivot !== "" ? this.app.state.pivot : "all";
  }

  /**
   * Returns the function at a place, or -1 for a group or the root.
   * @param {FlamePlace} place
   * @returns {number}
   */
  functionAt({ part, node }) {
    const fn = part.tree.fn(node);
    if (fn >= 0) return fn;
    return node === 0 && this.app.state.pivot !== "" ? this.app.data.functions.names.indexOf(this.app.state.pivot) : -1;
  }

  /**
   * Finds the node of a path of names, as far as the tree has it.
   * @param {Page.DrawnTree} tree
   * @param {string} path
   * @returns {number}
   */
  findNode(tree, path) {
    let node = 0;
    if (path === "") return node;
    const part = { tree, isAbove: false, zoom: 0, option: "" };
    for (const name of path.split(";")) {
      const kid = tree.kids(node).find((one) => foldedName(this.name(part, one)) === name);
      if (kid === undefined) break;
      node = kid;
    }
    return node;
  }

  /**
   * Returns the names from the root to a node, without the root.
   * @param {FlamePlace} place
   * @returns {string[]}
   */
  path({ part, node }) {
    const names = [];
    for (let at = node; at > 0; at = part.tree.parent(at)) names.push(foldedName(this.name(part, at)));
    return names.reverse();
  }

  /**
   * Returns the stack of a place as folded text, with its value in µs or events.
   * @param {FlamePlace} place
   * @returns {string}
   */
  folded(place) {
    const { app } = this;
    const { data, state } = app;
    let names = this.path(place);
    if (place.part.isAbove || this.isInverted()) names = names.reverse();
    if (state.pivot !== "") {
      if (place.part.isAbove) names.push(foldedName(state.pivot));
      else names.unshift(foldedName(state.pivot));
    }
    const one = state.threads.length === 1 ? data.threads.find((thread) => thread.key === state.threads[0]) : undefined;
    if (one !== undefined) names.unshift(foldedName(one.name));
    const value = place.part.tree.all(place.node);
    return `${names.join(";")} ${Math.floor(data.unit === "ns" ? value / 1000 : value)}`;
  }

  /** Computes the boxes of all rows. */
  layOut() {
    const { width } = this;
    this.rows = [];
    if (width === 0) return;
    const parts = [...this.parts].sort((one, other) => Number(other.isAbove) - Number(one.isAbove));
    for (const part of parts) {
      const rows = layOutPart(part, width);
      // Both parts of a pivot have the function as their root.
      this.rows.push(...(part.isAbove ? rows.slice(1).reverse() : rows));
    }
    this.spacer.style.height = `${Math.max(this.rows.length * ROW, this.scroller.clientHeight)}px`;
    if (this.isTurned()) this.scroller.scrollTop = this.spacer.offsetHeight;
    this.draw();
  }

  resize() {
    const width = this.scroller.clientWidth;
    const height = this.scroller.clientHeight;
    const ratio = window.devicePixelRatio;
    if (width === 0) return;
    const isWider = width !== this.width;
    this.width = width;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    if (isWider || this.rows.length === 0) this.layOut();
    else this.draw();
  }

  /** Reads the colours of the style sheet, which depend on the user's theme. */
  readColours() {
    const theme = ["--paper", "--text", "--accent"].map(styleVariable).join();
    if (theme === this.theme) return;
    this.theme = theme;
    const { context } = this;
    const read = (/** @type {string} */ name) => {
      context.fillStyle = "#888888";
      context.fillStyle = styleVariable(name);
      return parseColour(String(context.fillStyle));
    };
    const paper = read("--paper");
    const make = (/** @type {string} */ name) => {
      const base = read(name);
      const variants = VARIANTS.map((change) => {
        const colour = base.map((part) => Math.max(0, Math.min(255, part + 255 * change)));
        return { fill: toHex(colour), faded: toHex(colour.map((part, channel) => part + (paper[channel] - part) * FADED)), isDark: isDark(base) };
      });
      this.colours.set(name, variants);
    };
    ["--running", "--runnable", "--unknown", "--idle", "--group", "--blocked"].forEach(make);
    REASON_NAMES.forEach((_, reason) => make(`--blocked-${reason}`));
    this.kindColours = new Map(kindsIn(this.app.data.functions).map(([kind]) => [kind, toHex(read(kindVariable(kind)))]));
    this.paper = toHex(paper);
    this.isPaperDark = isDark(paper);
    this.text = styleVariable("--text");
    this.accent = styleVariable("--accent");
    this.font = `12px ${styleVariable("--mono")}`;
    context.font = this.font;
    this.characterWidth = context.measureText("mmmmmmmmmm").width / 10;
    this.hatch = this.makeHatch();
  }

  /** @returns {CanvasPattern | null} */
  makeHatch() {
    const tile = /** @type {HTMLCanvasElement} */ (element("canvas", { width: 8, height: 8 }));
    const context = tile.getContext("2d");
    if (context === null) return null;
    context.strokeStyle = "rgba(0, 0, 0, 0.17)";
    context.lineWidth = 1.5;
    for (const shift of [-8, 0, 8]) {
      context.moveTo(shift, 8);
      context.lineTo(shift + 8, 0);
    }
    context.stroke();
    return this.context.createPattern(tile, "repeat");
  }

  /**
   * @param {number} state
   * @param {FlamePlace} place
   * @returns {FlameColour}
   */
  colour(state, { part, node }) {
    let name = "--unknown";
    if (state === 1) name = "--running";
    else if (state === 2) name = "--runnable";
    else if (state === IDLE_STATE) name = "--idle";
    else if (state === 3) {
      const reason = part.tree.reason(node);
      name = reason < 0 ? "--blocked" : `--blocked-${reason}`;
    }
    const fn = part.tree.fn(node);
    const variants = this.colours.get(name) ?? [];
    return variants[fn >= 0 ? this.variants[fn] : 1];
  }

  /** Draws before the browser shows the next frame, once for all changes until then. */
  draw() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.paint();
    });
  }

  /** Draws the rows that are visible. */
  paint() {
    const { context, canvas, rows, scroller } = this;
    if (this.colours.size === 0 || this.width === 0) return;
    const ratio = window.devicePixelRatio;
    const top = scroller.scrollTop;
    const height = canvas.height / ratio;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = this.paper ?? "#fff";
    context.fillRect(0, 0, this.width, height);
    /** Rectangles by colour: left, top, width. @type {Map<string, number[]>} */
    const fills = new Map();
    /** Strips by colour: left, top, width. @type {Map<string, number[]>} */
    const strips = new Map();
    /** @type {number[]} */
    const hatched = [];
    /** @type {(() => void)[]} */
    const texts = [];
    const first = Math.max(0, Math.floor(top / ROW));
    const last = Math.min(rows.length, Math.ceil((top + height) / ROW) + 1);
    const isSearching = this.app.state.search !== "";
    /** Free rows above the graph if its roots are at the bottom. */
    const shift = this.rowShift();
    for (let place = first - Math.ceil(shift / ROW); place < last; place++) {
      const row = this.isTurned() ? rows[rows.length - 1 - place] : rows[place];
      if (row === undefined) continue;
      const y = place * ROW + shift - top;
      if (y > height || y + ROW < 0) continue;
      for (let box = 0; box < row.node.length; box++) {
        this.drawBox(row, box, y, isSearching, fills, strips, hatched, texts);
      }
    }
    for (const [fill, rectangles] of fills) {
      context.fillStyle = fill;
      for (let at = 0; at < rectangles.length; at += 3) context.fillRect(rectangles[at], rectangles[at + 1], rectangles[at + 2], ROW - 1);
    }
    if (this.hatch !== null) {
      context.fillStyle = this.hatch;
      for (let at = 0; at < hatched.length; at += 3) context.fillRect(hatched[at], hatched[at + 1], hatched[at + 2], ROW - 1);
    }
    for (const [fill, rectangles] of strips) {
      context.fillStyle = fill;
      for (let at = 0; at < rectangles.length; at += 3) context.fillRect(rectangles[at], rectangles[at + 1] + ROW - 1 - STRIP, rectangles[at + 2], STRIP);
    }
    context.font = this.font ?? "12px monospace";
    context.textBaseline = "middle";
    for (const text of texts) text();
    if (this.focus !== null) this.outline(this.focus);
  }

  /** @returns {number} Height in px above the first row. */
  rowShift() {
    return this.isTurned() ? Math.max(0, this.spacer.offsetHeight - this.rows.length * ROW) : 0;
  }

  /**
   * @param {FlameRow} row
   * @param {number} box
   * @param {number} y
   * @param {boolean} isSearching
   * @param {Map<string, number[]>} fills
   * @param {Map<string, number[]>} strips
   * @param {number[]} hatched
   * @param {(() => void)[]} texts
   */
  drawBox(row, box, y, isSearching, fills, strips, hatched, texts) {
    const left = row.left[box];
    const whole = row.right[box] - left;
    const width = whole > 3 ? whole - 1 : whole;
    const node = row.node[box];
    const addTo = (/** @type {Map<string, number[]>} */ map, /** @type {string} */ fill, /** @type {number} */ x, /** @type {number} */ wide) => {
      const rectangles = map.get(fill);
      if (rectangles === undefined) map.set(fill, [x, y, wide]);
      else rectangles.push(x, y, wide);
    };
    const add = (/** @type {string} */ fill, /** @type {number} */ x, /** @type {number} */ wide) => addTo(fills, fill, x, wide);
    if (node < 0) {
      add(this.colours.get("--group")?.[1].fill ?? "#888", left, width);
      return;
    }
    const { part } = row;
    const place = { part, node };
    const fn = part.tree.fn(node);
    const matched = isSearching ? this.functionAt(place) : -1;
    const isMatch = matched >= 0 && this.matched[matched] === 1;
    const isFaded = isSearching ? !isMatch : row.isFaded;
    /** Ends and tones of the coloured parts. @type {{ end: number, isDark: boolean }[]} */
    const spans = [];
    const { colouring } = this.app;
    if (colouring !== null || fn < -1) {
      const fill = fn < 0 ? this.colours.get("--group")?.[1].fill ?? "#888" : colouring?.colour(fn) ?? "#888";
      add(fill, left, width);
      spans.push({ end: left + width, isDark: isDark(parseColour(fill)) });
    } else {
      const all = part.tree.all(node);
      let at = left;
      let states = STATE_ORDER;
      if (width < LEAST_SHARES) {
        states = [STATE_ORDER.reduce((most, state) => (part.tree.total(node, state) > part.tree.total(node, most) ? state : most))];
      }
      for (const state of states) {
        const value = states.length === 1 ? all : part.tree.total(node, state);
        if (value === 0) continue;
        const wide = (width * value) / all;
        const colour = this.colour(state, place);
        if (wide >= 0.25) add(isFaded ? colour.faded : colour.fill, at, wide);
        if (state === 2 && wide > 4 && !isFaded) hatched.push(at, y, wide);
        at += wide;
        spans.push({ end: at, isDark: isFaded ? this.isPaperDark === true : colour.isDark });
      }
      const kind = fn < 0 || isFaded ? undefined : this.kindColours.get(kindOf(this.app.data.functions, fn));
      if (kind !== undefined) addTo(strips, kind, left, width);
    }
    if (isMatch) {
      texts.push(() => {
        this.context.strokeStyle = this.text ?? "#000";
        this.context.lineWidth = 1.5;
        this.context.strokeRect(left + 0.75, y + 0.75, Math.max(0.5, width - 1.5), ROW - 2.5);
      });
    }
    if (width >= LEAST_TEXT) texts.push(() => this.drawText(this.name(part, node), left, y, width, spans));
  }

  /**
   * Draws a name, black on light and white on dark parts of the box.
   * @param {string} name
   * @param {number} left
   * @param {number} y
   * @param {number} width
   * @param {{ end: number, isDark: boolean }[]} spans
   */
  drawText(name, left, y, width, spans) {
    const { context } = this;
    const wide = this.characterWidth ?? 7;
    const text = fitName(name, Math.floor((width - 2 * PADDING) / wide));
    if (text === "") return;
    const x = left + PADDING;
    const end = Math.min(x + text.length * wide, left + width);
    const middle = y + (ROW - STRIP) / 2;
    const touched = spans.filter((_, number) => (number === 0 ? left : spans[number - 1].end) < end);
    const draw = (/** @type {boolean} */ isOnDark) => {
      context.fillStyle = isOnDark ? "#fff" : "#000";
      context.fillText(text, x, middle, width - PADDING);
    };
    if (touched.every((span) => span.isDark === touched[0].isDark)) {
      draw(touched[0]?.isDark === true);
      return;
    }
    let from = left;
    for (const span of touched) {
      context.save();
      context.beginPath();
      context.rect(from, y, span.end - from, ROW);
      context.clip();
      draw(span.isDark);
      context.restore();
      from = span.end;
    }
  }

  /** @param {FlamePlace} place */
  outline(place) {
    const found = this.boxOf(place);
    if (found === null) return;
    const { context } = this;
    const y = this.rowTop(found.row) - this.scroller.scrollTop;
    const row = this.rows[found.row];
    const width = Math.max(2, row.right[found.box] - row.left[found.box] - 1);
    context.lineWidth = document.activeElement === this.canvas ? 2.5 : 1;
    context.strokeStyle = this.paper ?? "#fff";
    context.strokeRect(row.left[found.box] + 2.5, y + 2.5, Math.max(0, width - 5), ROW - 6);
    context.strokeStyle = this.accent ?? "#000";
    context.strokeRect(row.left[found.box] + 1, y + 1, Math.max(0, width - 2), ROW - 3);
  }

  /**
   * Returns the row and the box of a node, or null if it is not drawn.
   * @param {FlamePlace} place
   * @returns {{ row: number, box: number } | null}
   */
  boxOf({ part, node }) {
    for (let row = 0; row < this.rows.length; row++) {
      if (this.rows[row].part !== part) continue;
      const box = this.rows[row].node.indexOf(node);
      if (box >= 0) return { row, box };
    }
    // The function of a pivot is drawn once for both parts.
    return part.isAbove && node === 0 ? this.boxOf({ part: this.parts[0], node: 0 }) : null;
  }

  /**
   * Returns the place of a row's upper edge in the scrolled area.
   * @param {number} row
   * @returns {number}
   */
  rowTop(row) {
    return (this.isTurned() ? this.rows.length - 1 - row : row) * ROW + this.rowShift();
  }

  /**
   * @param {MouseEvent} event
   * @returns {FlamePlace | null}
   */
  placeAt(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const x = event.clientX - bounds.left;
    const place = Math.floor((event.clientY - bounds.top + this.scroller.scrollTop - this.rowShift()) / ROW);
    const row = this.isTurned() ? this.rows[this.rows.length - 1 - place] : this.rows[place];
    if (row === undefined) return null;
    let low = 0;
    let high = row.node.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row.right[middle] > x) high = middle;
      else low = middle + 1;
    }
    if (low === row.node.length || row.left[low] > x) return null;
    const node = row.node[low];
    return { part: row.part, node: node < 0 ? -1 - node : node };
  }

  /** @param {MouseEvent} event */
  hover(event) {
    const place = this.placeAt(event);
    this.tip.hidden = place === null;
    if (place === null) return;
    const lines = [element("strong", {}, cutText(this.name(place.part, place.node))), ...this.describe(place).map((line) => element("span", {}, line))];
    this.tip.replaceChildren(...lines);
    const { style } = this.tip;
    style.left = `${Math.min(event.clientX + 14, window.innerWidth - this.tip.offsetWidth - 8)}px`;
    const below = event.clientY + 18;
    style.top = `${below + this.tip.offsetHeight > window.innerHeight ? event.clientY - this.tip.offsetHeight - 8 : below}px`;
  }

  /**
   * Describes a place in lines of text.
   * @param {FlamePlace} place
   * @returns {string[]}
   */
  describe(place) {
    const { app } = this;
    const { tree } = place.part;
    const { functions } = app.data;
    const fn = this.functionAt(place);
    const all = tree.all(place.node);
    const lines = [];
    if (fn >= 0) {
      const kind = ["", "", "kernel", "note of systemscope"][functions.kinds[fn]] ?? "";
      const language = languageText(functions.languages[fn]);
      const about = [functions.modules[fn], kind, language].filter((text) => text !== "").join(", ");
      if (about !== "") lines.push(about);
    }
    const ownText = fn < 0 || this.isInverted() || place.part.isAbove ? "" : `, ${app.value(tree.self(place.node))} of it in the function itself`;
    lines.push(`${app.value(all)}, ${formatShare(all, app.selected.shown)} of what is shown${ownText}`);
    const states = STATE_ORDER.flatMap((state) => {
      const value = tree.total(place.node, state);
      return value > 0 ? [`${STATE_TEXTS[state]} ${formatShare(value, all)}`] : [];
    });
    const reason = tree.reason(place.node);
    if (tree.total(place.node, 3) > 0 && reason > 0) states.push(`blocked most by: ${REASON_NAMES[reason]}`);
    lines.push(states.join(", "));
    if (app.colouring !== null && fn >= 0) lines.push(app.colouring.describe(fn));
    return lines;
  }

  showDetail() {
    const place = this.focus;
    if (place === null) {
      this.detail.replaceChildren();
      return;
    }
    const name = cutText(this.name(place.part, place.node));
    this.detail.replaceChildren(element("strong", {}, name), ...this.describe(place).map((line) => element("span", {}, line)));
  }

  /**
   * @param {FlamePlace} place
   * @param {boolean} [isSaid]
   */
  setFocus(place, isSaid = true) {
    this.focus = place;
    this.showDetail();
    this.draw();
    if (isSaid) this.app.say(`${cutText(this.name(place.part, place.node))}: ${this.describe(place).join("; ")}`);
  }

  /** Scrolls to the row of the focus. */
  scrollToFocus() {
    if (this.focus === null) return;
    const found = this.boxOf(this.focus);
    if (found === null) return;
    const top = this.rowTop(found.row);
    const { scroller } = this;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top + ROW > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + ROW - scroller.clientHeight;
  }

  /** @param {FlamePlace} place */
  zoomTo(place) {
    this.focus = place;
    const path = this.path(place).join(";");
    if (path === this.app.option(place.part.option)) {
      this.setFocus(place);
      return;
    }
    this.setOptions({ [place.part.option]: path }, false);
    this.setFocus(place);
    this.scrollToFocus();
  }

  zoomOut() {
    this.setOptions({ "flame.zoom": "", "flame.above": "" }, false);
    this.setFocus({ part: this.parts[0], node: 0 });
  }

  /** @param {FlamePlace} place */
  pivot(place) {
    const fn = this.functionAt(place);
    if (fn < 0) return;
    const options = new Map(this.app.state.options);
    options.delete("flame.zoom");
    options.delete("flame.above");
    this.app.setState({ pivot: this.app.data.functions.names[fn], options }, "push");
  }

  /**
   * Opens the menu of the focused function, at a place or below its box.
   * @param {number} [x]
   * @param {number} [y]
   */
  openMenu(x, y) {
    const place = this.focus;
    if (place === null) return;
    if (x === undefined || y === undefined || (x === 0 && y === 0)) {
      const bounds = this.canvas.getBoundingClientRect();
      const found = this.boxOf(place);
      const row = found === null ? null : this.rows[found.row];
      x = bounds.left + (row === null || found === null ? 0 : row.left[found.box]) + 8;
      y = bounds.top + (found === null ? 0 : this.rowTop(found.row) - this.scroller.scrollTop) + ROW;
    }
    const zoom = { text: "Zoom to it", key: "Enter", act: () => this.zoomTo(place) };
    const fn = this.functionAt(place);
    if (fn < 0) this.app.menu(x, y, [zoom, ...this.groupEntries(place), { text: "Copy the name", key: "c", act: () => this.app.copy(this.name(place.part, place.node)) }]);
    else this.app.functionMenu(x, y, fn, this.folded(place), [zoom]);
  }

  /**
   * Returns the entries of the menu of a group's root.
   * @param {FlamePlace} place
   * @returns {Page.MenuEntry[]}
   */
  groupEntries({ part, node }) {
    const { app } = this;
    const name = node > 0 ? this.name(part, node) : "";
    const threads = app.data.threads.filter((thread) => this.groupName(thread) === name).map((thread) => thread.key);
    if (name === "" || part.tree.parent(node) !== 0 || threads.length === 0) return [];
    return [{ text: threads.length === 1 ? "Show only this thread" : `Show only its ${threads.length} threads`, act: () => app.setState({ threads }, "push") }];
  }

  /**
   * Returns the group of a thread, or "" without groups.
   * @param {Page.Thread} thread
   * @returns {string}
   */
  groupName(thread) {
    switch (this.app.option("flame.group")) {
      case "name": return thread.name;
      case "process": return this.app.data.processes[thread.process].label;
      case "thread": return thread.label;
      default: return "";
    }
  }

  /** @param {number} direction */
  stepThread(direction) {
    const { app } = this;
    const { data, state } = app;
    const keys = threadsByTime(data);
    const at = state.threads.length === 1 ? keys.indexOf(state.threads[0]) : -1;
    const to = at < 0 ? (direction > 0 ? 0 : keys.length - 1) : at + direction;
    app.setState({ threads: to < 0 || to >= keys.length ? [] : [keys[to]] }, "replace");
  }

  /** Finds the outermost functions that the search matches, the heaviest first. */
  findMatches() {
    const { app } = this;
    this.searched = app.state.search;
    this.matchAt = -1;
    this.matches = [];
    this.matched = new Uint8Array(app.data.functions.count);
    if (app.state.search === "") return;
    this.matched = matchFunctions(app.data.functions, app.state.search);
    for (const part of this.parts) {
      if (part.tree instanceof PlainTree) {
        const { fn, end } = part.tree.tree;
        const { sums } = part.tree;
        for (let node = 1; node < fn.length; ) {
          if (sums.all(node) === 0) {
            node = end[node];
          } else if (fn[node] >= 0 && this.matched[fn[node]] === 1) {
            this.matches.push({ part, node });
            node = end[node];
          } else {
            node++;
          }
        }
      } else {
        for (const row of layOutPart(part, Math.max(1, this.width))) {
          for (const node of row.node) {
            const fn = node > 0 ? part.tree.fn(node) : -1;
            if (fn >= 0 && this.matched[fn] === 1) this.matches.push({ part, node });
          }
        }
      }
    }
    this.matches.sort((one, other) => other.part.tree.all(other.node) - one.part.tree.all(one.node));
    this.matches.length = Math.min(this.matches.length, MOST_MATCHES);
  }

  /** @returns {string} */
  matchPlace() {
    const { length } = this.matches;
    if (this.app.state.search === "") return "";
    if (length === 0) return "no match";
    const most = length === MOST_MATCHES ? `${MOST_MATCHES}+` : String(length);
    return this.matchAt < 0 ? `${most} ${length === 1 ? "match" : "matches"}` : `${this.matchAt + 1}/${most}`;
  }

  /** @param {number} direction */
  stepMatch(direction) {
    const { length } = this.matches;
    if (length === 0) return;
    this.matchAt = this.matchAt < 0 && direction < 0 ? length - 1 : (this.matchAt + direction + length) % length;
    const match = this.matches[this.matchAt];
    const found = this.boxOf(match);
    const isVisible = found !== null && this.rows[found.row].right[found.box] - this.rows[found.row].left[found.box] >= 3;
    if (!isVisible) {
      // A match that is too thin is visible below its caller, or alone.
      const { tree } = match.part;
      const caller = tree.parent(match.node);
      const isThin = (tree.all(match.node) / tree.all(caller)) * this.width < 3;
      const to = { part: match.part, node: isThin ? match.node : caller };
      this.setOptions({ [match.part.option]: this.path(to).join(";") }, false);
    }
    this.setFocus(match);
    this.scrollToFocus();
  }

  /**
   * @param {KeyboardEvent} event
   * @returns {boolean}
   */
  key(event) {
    const { app } = this;
    const isOnCanvas = event.target === this.canvas || event.target === document.body;
    const place = this.focus;
    switch (event.key) {
      case "0": this.zoomOut(); return true;
      case "i": this.toggleOption("flame.roots", "below"); return true;
      case "v": if (app.state.pivot === "") this.toggleOption("flame.invert", "yes", true); return true;
      case "t": this.toggleOption("flame.tree", "yes"); return true;
      case ",": this.stepThread(-1); return true;
      case ".": this.stepThread(1); return true;
      default: break;
    }
    if (!isOnCanvas || place === null) return false;
    const fn = this.functionAt(place);
    const name = fn >= 0 ? app.data.functions.names[fn] : "";
    const filter = (/** @type {Page.Filter["kind"]} */ kind) => {
      if (fn >= 0) app.addFilter({ kind, name });
    };
    switch (event.key) {
      case "ArrowDown": this.move(place, this.isTurned() !== place.part.isAbove ? "caller" : "callee"); return true;
      case "ArrowUp": this.move(place, this.isTurned() !== place.part.isAbove ? "callee" : "caller"); return true;
      case "ArrowRight": case "d": this.moveAside(place, 1); return true;
      case "ArrowLeft": case "a": this.moveAside(place, -1); return true;
      case "Enter": case "w": this.zoomTo(place); return true;
      case "s": case "Backspace": this.zoomTo({ part: place.part, node: Math.max(0, place.part.tree.parent(place.part.zoom)) }); return true;
      case "p": this.pivot(place); return true;
      case "o": filter("only"); return true;
      case "x": filter("without"); return true;
      case "h": filter("hide"); return true;
      case "c": app.copy(this.name(place.part, place.node)); return true;
      case "C": app.copy(this.folded(place)); return true;
      case "m": this.openMenu(); return true;
      case "ContextMenu": this.openMenu(); return true;
      case "F10": if (event.shiftKey) this.openMenu(); return event.shiftKey;
      default: return false;
    }
  }

  /**
   * Moves the focus along the stack.
   * @param {FlamePlace} place
   * @param {"caller" | "callee"} to
   */
  move({ part, node }, to) {
    const { tree } = part;
    if (to === "callee") {
      const kid = tree.kids(node)[0];
      if (kid !== undefined) this.setFocus({ part, node: kid });
    } else if (node > 0) {
      this.setFocus({ part, node: tree.parent(node) });
    } else if (this.parts.length > 1) {
      // From the function of a pivot to its callers, and back.
      const other = this.parts[part.isAbove ? 0 : 1];
      const kid = other.tree.kids(0)[0];
      if (kid !== undefined) this.setFocus({ part: other, node: kid });
    }
    this.scrollToFocus();
  }

  /**
   * Moves the focus to a sibling.
   * @param {FlamePlace} place
   * @param {number} step
   */
  moveAside({ part, node }, step) {
    if (node <= 0) return;
    const siblings = part.tree.kids(part.tree.parent(node));
    const to = siblings[siblings.indexOf(node) + step];
    if (to !== undefined) this.setFocus({ part, node: to });
  }

  updateLegend() {
    const { app } = this;
    if (app.colouring !== null) {
      this.legend.replaceChildren(element("li", {}, app.colouring.legend));
      return;
    }
    const { samples } = app.data;
    const { weight } = app.selected;
    const byReason = new Float64Array(REASON_NAMES.length);
    const byState = new Float64Array(5);
    for (let row = 0; row < weight.length; row++) {
      byState[this.states[row]] += weight[row];
      if (this.states[row] === 3) byReason[samples.reason[row]] += weight[row];
    }
    const item = (/** @type {string} */ swatch, /** @type {string} */ text) => element("li", {}, element("span", { class: `swatch ${swatch}` }), text);
    const items = [1, 2].filter((state) => byState[state] > 0).map((state) => item(`swatch-${STATE_NAMES[state]}`, state === 2 ? "runnable: waiting for a CPU" : "running"));
    const reasons = REASON_NAMES.map((_, reason) => reason).filter((reason) => byReason[reason] > 0).sort((one, other) => byReason[other] - byReason[one]);
    for (const reason of reasons) items.push(item(`swatch-blocked-${reason}`, `blocked: ${REASON_NAMES[reason]}`));
    if (byState[IDLE_STATE] > 0) items.push(item("swatch-idle", "blocked without work (idle)"));
    for (const [kind, text] of kindsIn(app.data.functions)) items.push(item(`swatch-kind swatch-kind-${kind}`, text));
    this.legend.replaceChildren(...items);
  }

  /**
   * Shows the graph as a tree of text, for screen readers and for copying.
   * @param {boolean} isNew
   */
  updateTree(isNew) {
    const isShown = this.app.option("flame.tree") !== "";
    const wasShown = !this.treePanel.hidden;
    this.treePanel.hidden = !isShown;
    if (!isShown || (wasShown && !isNew)) return;
    this.treePanel.replaceChildren(...this.parts.map((part) => this.makeTree(part)));
    if (!wasShown && !isNew) {
      const first = this.treePanel.querySelector("[role=treeitem]");
      if (first instanceof HTMLElement) first.focus();
    }
  }

  /**
   * @param {FlamePart} part
   * @returns {HTMLElement}
   */
  makeTree(part) {
    const label = part.isAbove ? "Callers" : this.isInverted() ? "Leaves and their callers" : "Stacks";
    const root = element("ul", { role: "tree", "aria-label": label });
    const item = this.makeItem(part, part.zoom, 1);
    item.tabIndex = 0;
    root.append(item);
    this.expand(item, part, part.zoom, 1);
    root.addEventListener("keydown", (event) => this.treeKey(event, root));
    return root;
  }

  /**
   * @param {FlamePart} part
   * @param {number} node
   * @param {number} level
   * @returns {HTMLElement}
   */
  makeItem(part, node, level) {
    const { app } = this;
    const name = cutText(this.name(part, node));
    const hasKids = part.tree.kids(node).length > 0;
    const all = part.tree.all(node);
    const share = element("span", { class: "share" }, formatShare(all, app.selected.shown));
    const line = element("span", { class: "line" }, share, element("span", { class: "name" }, name), element("span", { class: "value" }, app.value(all)));
    const label = `${name}, ${formatShare(all, app.selected.shown)}, ${app.value(all)}`;
    const item = element("li", { role: "treeitem", tabindex: -1, "aria-level": level, "aria-label": label, ...(hasKids ? { "aria-expanded": "false" } : {}) }, line);
    line.addEventListener("click", () => {
      this.toggleItem(item, part, node, level);
      item.focus();
    });
    item.addEventListener("focus", () => this.setFocus({ part, node }, false));
    item.addEventListener("dblclick", (event) => {
      event.stopPropagation();
      this.zoomTo({ part, node });
    });
    item.addEventListener("toggle-item", (event) => {
      event.stopPropagation();
      this.toggleItem(item, part, node, level);
    });
    return item;
  }

  /**
   * @param {HTMLElement} item
   * @param {FlamePart} part
   * @param {number} node
   * @param {number} level
   */
  toggleItem(item, part, node, level) {
    if (item.getAttribute("aria-expanded") === "true") {
      item.setAttribute("aria-expanded", "false");
      item.querySelector("ul")?.remove();
    } else {
      this.expand(item, part, node, level);
    }
  }

  /**
   * Adds the children of an item, and of its only child in turn.
   * @param {HTMLElement} item
   * @param {FlamePart} part
   * @param {number} node
   * @param {number} level
   */
  expand(item, part, node, level) {
    let at = { item, node, level };
    for (;;) {
      const kids = part.tree.kids(at.node);
      if (kids.length === 0) return;
      at.item.setAttribute("aria-expanded", "true");
      const group = element("ul", { role: "group" });
      at.item.append(group);
      const items = this.addItems(group, part, kids, 0, at.level + 1);
      if (kids.length > 1) return;
      at = { item: items[0], node: kids[0], level: at.level + 1 };
    }
  }

  /**
   * @param {HTMLElement} group
   * @param {FlamePart} part
   * @param {Int32Array} kids
   * @param {number} from
   * @param {number} level
   * @returns {HTMLElement[]}
   */
  addItems(group, part, kids, from, level) {
    const items = Array.from(kids.subarray(from, from + TREE_PAGE), (kid) => this.makeItem(part, kid, level));
    group.append(...items);
    const next = from + TREE_PAGE;
    if (next < kids.length) {
      const more = element("li", { role: "treeitem", tabindex: -1, "aria-level": level, class: "more" }, `${kids.length - next} more`);
      const act = () => {
        more.remove();
        const added = this.addItems(group, part, kids, next, level);
        added[0].focus();
      };
      more.addEventListener("click", act);
      more.addEventListener("toggle-item", (event) => {
        event.stopPropagation();
        act();
      });
      group.append(more);
    }
    return items;
  }

  /**
   * @param {KeyboardEvent} event
   * @param {HTMLElement} root
   */
  treeKey(event, root) {
    const item = event.target;
    if (!(item instanceof HTMLElement) || item.getAttribute("role") !== "treeitem") return;
    const items = /** @type {HTMLElement[]} */ ([...root.querySelectorAll("[role=treeitem]")]);
    const at = items.indexOf(item);
    const isOpen = item.getAttribute("aria-expanded") === "true";
    const isClosed = item.getAttribute("aria-expanded") === "false";
    const toggle = () => item.dispatchEvent(new Event("toggle-item", { bubbles: true }));
    let to = at;
    switch (event.key) {
      case "ArrowDown": to = at + 1; break;
      case "ArrowUp": to = at - 1; break;
      case "Home": to = 0; break;
      case "End": to = items.length - 1; break;
      case "ArrowRight":
        if (isClosed) toggle();
        else if (isOpen) to = at + 1;
        break;
      case "ArrowLeft":
        if (isOpen) toggle();
        else to = items.indexOf(/** @type {HTMLElement} */ (item.parentElement?.closest("[role=treeitem]")));
        break;
      case " ": toggle(); break;
      case "Enter":
        if (this.focus !== null && !item.classList.contains("more")) this.zoomTo(this.focus);
        else toggle();
        break;
      case "p": if (this.focus !== null) this.pivot(this.focus); break;
      case "m": case "ContextMenu": {
        const bounds = item.getBoundingClientRect();
        this.openMenu(bounds.left + 24, bounds.top + 20);
        break;
      }
      default: return;
    }
    event.preventDefault();
    event.stopPropagation();
    const next = items[to];
    if (to === at || next === undefined) return;
    item.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
}

/**
 * Computes the boxes of a part, row by row from the root.
 * @param {FlamePart} part
 * @param {number} width
 * @returns {FlameRow[]}
 */
function layOutPart(part, width) {
  const { tree, zoom } = part;
  const ancestors = [];
  for (let node = zoom; node > 0; ) {
    node = tree.parent(node);
    ancestors.push(node);
  }
  /** @type {FlameRow[]} */
  const rows = ancestors.reverse().map((node) => ({ part, isFaded: true, left: [0], right: [width], node: [node] }));
  const whole = tree.all(zoom);
  if (whole === 0) return rows;
  const scale = width / whole;
  /** @type {FlameRow} */
  let row = { part, isFaded: false, left: [0], right: [width], node: [zoom] };
  while (row.node.length > 0) {
    rows.push(row);
    /** @type {FlameRow} */
    const next = { part, isFaded: false, left: [], right: [], node: [] };
    for (let box = 0; box < row.node.length; box++) {
      const node = row.node[box];
      if (node < 0) continue;
      const kids = tree.kids(node);
      let left = row.left[box];
      for (let place = 0; place < kids.length; place++) {
        const wide = tree.all(kids[place]) * scale;
        if (wide < LEAST_WIDTH && tree.fn(kids[place]) > -2) {
          let rest = 0;
          for (let other = place; other < kids.length; other++) rest += tree.all(kids[other]);
          if (rest * scale >= LEAST_WIDTH) {
            next.left.push(left);
            next.right.push(left + rest * scale);
            next.node.push(-1 - node);
          }
          break;
        }
        next.left.push(left);
        next.right.push(left + wide);
        next.node.push(kids[place]);
        left += wide;
      }
    }
    row = next;
  }
  return rows;
}

/**
 * Returns the keys of threads, those with the most time that is not idle first.
 * @param {Page.Data} data
 * @returns {string[]}
 */
function threadsByTime(data) {
  const { samples } = data;
  const sums = new Float64Array(data.threads.length);
  for (let row = 0; row < samples.measured; row++) {
    if (samples.idle[row] === 0) sums[samples.thread[row]] += samples.value[row];
  }
  const order = data.threads.map((_, number) => number).sort((one, other) => sums[other] - sums[one] || one - other);
  return order.map((number) => data.threads[number].key);
}

/**
 * Returns a name as a field of folded text.
 * @param {string} name
 * @returns {string}
 */
function foldedName(name) {
  return name.replaceAll(";", ":");
}

/**
 * Shortens a name to a number of characters: first without parameters, then without its path.
 * @param {string} name
 * @param {number} most
 * @returns {string}
 */
export function fitName(name, most) {
  if (most < 2) return "";
  if (name.length <= most) return name;
  const short = shortName(name);
  if (short.length <= most) return short;
  if (short.startsWith("[")) return `${short.slice(0, most - 1)}…`;
  const place = Math.max(short.lastIndexOf("/"), short.lastIndexOf(":")) + 1;
  const last = short.slice(place);
  if (place > 0 && last.length > 0 && last.length + 1 <= most) {
    // As much of the path's end as fits.
    return `…${short.slice(short.length - most + 1)}`;
  }
  return `${(last.length > 0 ? last : short).slice(0, most - 1)}…`;
}

/**
 * Returns a function's name without template arguments and parameters, as `short_name()` in Rust.
 * @param {string} name
 * @returns {string}
 */
function shortName(name) {
  if (name.startsWith("[") || name.includes("operator") || name.includes(".py:")) return name;
  let short = "";
  let depth = 0;
  for (const character of name.replaceAll("(anonymous namespace)", "{anonymous}")) {
    if (character === "(" && depth === 0 && short !== "") break;
    if (character === "<") {
      if (depth === 0) short += "<…>";
      depth++;
    } else if (character === ">") {
      depth = Math.max(0, depth - 1);
    } else if (depth === 0) {
      short += character;
    }
  }
  return short;
}

/**
 * @param {string} name
 * @returns {number}
 */
function nameHash(name) {
  let hash = 0x811c9dc5;
  for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}

/**
 * @param {string} hex Such as `#0072b2`.
 * @returns {number[]}
 */
function parseColour(hex) {
  const match = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})/i.exec(hex);
  return match === null ? [128, 128, 128] : match.slice(1).map((part) => parseInt(part, 16));
}

/**
 * @param {number[]} colour
 * @returns {string}
 */
function toHex(colour) {
  return `#${colour.map((part) => Math.round(part).toString(16).padStart(2, "0")).join("")}`;
}

/**
 * Returns whether white text is easier to read on a colour than black text.
 * @param {number[]} colour
 * @returns {boolean}
 */
function isDark(colour) {
  const [red, green, blue] = colour.map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.18;
}
