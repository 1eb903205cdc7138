// The timeline: a lane of states for each thread, and the number of threads in each state above it.
import { element, button, styleVariable } from "./dom.js";
import { STATE_NAMES, REASON_NAMES, formatTime, formatShare, formatCount } from "./format.js";
import { waitText, wakerText, stackNames } from "./data.js";
import { matchFunctions } from "./search.js";
import { select } from "./selection.js";
import { stackElement } from "./table.js";
import { markStacks } from "./tree.js";

/** Kinds of time in a lane: running, runnable, blocked, and time that the selection hides. */
const LANE_KINDS = 4;
const LANE_HIDDEN = 3;
/** Interval of several states. */
const LANE_SEVERAL = 4;

const LANE_HEIGHT = 24;
const LANE_GUTTER = 190;
const LANE_AXIS = 22;
const MINIMAP_HEIGHT = 60;
/** Maximum cells (threads times columns) of the minimap. */
const MINIMAP_CELLS = 400_000;
/** Maximum intervals that `waitPath` looks at. */
const PATH_ROWS = 1_000_000;
/** Maximum wakers in a row that the search follows. */
const PATH_DEPTH = 32;
/** Maximum wakers of wakers that the panel lists. */
const CHAIN_STEPS = 8;
/** Maximum letters of a name that are drawn. */
const MOST_LETTERS = 200;
/** Maximum CPU samples of an interval that the panel lists by function. */
const PANEL_ROWS = 12;

/**
 * Sums over intervals. `before[kind][row]` is the time of this kind in all intervals before the
 * row, so any part of a lane is the difference of two sums.
 * @typedef {{ kind: Uint8Array, before: Float64Array[] }} LaneSums
 */

/**
 * Part of the time of a wait: a thread was in a state meanwhile. State 0 is a gap of the lane, and
 * `reason` is -1 outside of blocked time.
 * @typedef {{ thread: number, state: number, reason: number, ns: number }} PathPart
 */

/**
 * Adds up intervals by the kind of time that their lanes show.
 * @param {Page.Data} data
 * @param {Uint8Array} isShown 1 for each sample that the selection shows.
 * @param {Uint8Array} isStateShown By state: 1 if the selection shows intervals without a sample.
 * @returns {LaneSums}
 */
export function sumLanes(data, isShown, isStateShown) {
  const { count, length, state, sample, mixed } = data.times.intervals;
  const kind = new Uint8Array(count);
  const before = [];
  for (let k = 0; k < LANE_KINDS; k++) before.push(new Float64Array(count + 1));
  const sums = [0, 0, 0, 0];
  for (let row = 0; row < count; row++) {
    for (let k = 0; k < LANE_KINDS; k++) before[k][row] = sums[k];
    const of = state[row];
    if (of === 4) {
      kind[row] = LANE_SEVERAL;
      for (let s = 0; s < 3; s++) {
        sums[isStateShown[s + 1] === 1 ? s : LANE_HIDDEN] += mixed[s][sample[row]];
      }
      continue;
    }
    const shows = sample[row] >= 0 ? isShown[sample[row]] === 1 : isStateShown[of] === 1;
    kind[row] = shows ? of - 1 : LANE_HIDDEN;
    sums[kind[row]] += length[row];
  }
  for (let k = 0; k < LANE_KINDS; k++) before[k][count] = sums[k];
  return { kind, before };
}

/**
 * Returns the last row in [low, high) that starts at or before a time, or low - 1.
 * @param {Float64Array} start
 * @param {number} low
 * @param {number} high
 * @param {number} time
 * @returns {number}
 */
export function rowAtTime(start, low, high, time) {
  let from = low;
  let to = high;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (start[middle] <= time) from = middle + 1;
    else to = middle;
  }
  return from - 1;
}

/**
 * Divides a part of a lane into columns of equal length. `out[4 * column + kind]` gets the time of
 * each kind, and `rows[column]` the interval if one covers the whole column, or else -1.
 * @param {Page.Data} data
 * @param {LaneSums} sums
 * @param {number} thread
 * @param {number} from
 * @param {number} step Length of a column in ns.
 * @param {number} columns
 * @param {Float64Array} out
 * @param {Int32Array | null} rows
 */
export function laneColumns(data, sums, thread, from, step, columns, out, rows) {
  const { first, start, length } = data.times.intervals;
  const low = first[thread];
  const high = first[thread + 1];
  const [b0, b1, b2, b3] = sums.before;
  let at = rowAtTime(start, low, high, from);
  let p0 = 0, p1 = 0, p2 = 0, p3 = 0;
  for (let column = -1; column < columns; column++) {
    const time = from + step * (column + 1);
    const last = at;
    if (column >= 0 && at + 1 < high && start[at + 1] <= time) {
      // The step doubles until it is too far, so that a column costs the logarithm of its rows.
      let jump = 1;
      while (at + jump < high && start[at + jump] <= time) jump *= 2;
      at = rowAtTime(start, at + (jump >> 1), Math.min(high, at + jump), time);
    }
    let q0, q1, q2, q3;
    if (at < low) {
      q0 = b0[low]; q1 = b1[low]; q2 = b2[low]; q3 = b3[low];
    } else {
      const all = length[at];
      const share = all > 0 ? Math.min(1, (time - start[at]) / all) : 1;
      q0 = b0[at] + share * (b0[at + 1] - b0[at]);
      q1 = b1[at] + share * (b1[at + 1] - b1[at]);
      q2 = b2[at] + share * (b2[at + 1] - b2[at]);
      q3 = b3[at] + share * (b3[at + 1] - b3[at]);
    }
    if (column >= 0) {
      const to = column * LANE_KINDS;
      out[to] = q0 - p0;
      out[to + 1] = q1 - p1;
      out[to + 2] = q2 - p2;
      out[to + 3] = q3 - p3;
      if (rows) rows[column] = last === at && at >= low && start[at] + length[at] >= time ? at : -1;
    }
    p0 = q0; p1 = q1; p2 = q2; p3 = q3;
  }
}

/**
 * Divides the CPU samples of a thread, in place of intervals, into columns of equal length.
 * @param {Page.Data} data
 * @param {Uint8Array} isShown
 * @param {number} thread
 * @param {number} from
 * @param {number} step Length of a column in ns.
 * @param {number} columns
 * @param {Float64Array} out `out[4 * column]` gets the number of samples.
 */
export function sampleColumns(data, isShown, thread, from, step, columns, out) {
  const { first, time, sample } = data.times.timed;
  out.fill(0);
  const high = first[thread + 1];
  for (let row = rowAtTime(time, first[thread], high, from - 0.5) + 1; row < high; row++) {
    const column = Math.floor((time[row] - from) / step);
    if (column >= columns) break;
    if (column >= 0 && isShown[sample[row]] === 1) out[column * LANE_KINDS]++;
  }
}

/**
 * Calls a function with each part of a thread's time from one instant to another: a row, or -1 for
 * a gap, and where it begins and ends.
 * @param {Page.Data} data
 * @param {number} thread
 * @param {number} from
 * @param {number} to
 * @param {(row: number, begin: number, end: number) => void} act
 */
export function eachPart(data, thread, from, to, act) {
  const { first, start, length } = data.times.intervals;
  const high = first[thread + 1];
  let done = from;
  for (let row = Math.max(first[thread], rowAtTime(start, first[thread], high, from)); row < high && start[row] < to; row++) {
    const begin = Math.max(start[row], done);
    const end = Math.min(start[row] + length[row], to);
    if (end <= begin) continue;
    if (begin > done) act(-1, done, begin);
    act(row, begin, end);
    done = end;
  }
  if (done < to) act(-1, done, to);
}

/**
 * Returns the thread that ended a wait, or -1 if it is unknown or outside the capture.
 * @param {Page.Data} data
 * @param {number} row Interval.
 * @returns {number}
 */
export function wakerOfRow(data, row) {
  const waker = wakerRow(data, row);
  return waker < 0 ? -1 : data.wakers.thread[waker];
}

/**
 * Returns the row in `data.wakers` of the thread that ended a wait, or -1.
 * @param {Page.Data} data
 * @param {number} row Interval.
 * @returns {number}
 */
function wakerRow(data, row) {
  const { state, sample } = data.times.intervals;
  if (state[row] !== 3 || sample[row] < 0) return -1;
  const chain = data.samples.chain[sample[row]];
  if (chain < 0 || data.wakers.first[chain] === data.wakers.first[chain + 1]) return -1;
  return data.wakers.first[chain];
}

/**
 * Divides the time of a wait among the threads that it waited for. The activity of the waker during the
 * wait replaces the wait, and so on for the waker's own waits. The parts add up to the interval's
 * length; the longest is first.
 * @param {Page.Data} data
 * @param {number} row Interval.
 * @returns {PathPart[]}
 */
export function waitPath(data, row) {
  const { start, length, state, sample, mixed } = data.times.intervals;
  /** @type {Map<string, PathPart>} */
  const parts = new Map();
  /** @param {number} thread @param {number} of @param {number} reason @param {number} ns */
  const add = (thread, of, reason, ns) => {
    if (ns <= 0) return;
    const key = `${thread} ${of} ${reason}`;
    const part = parts.get(key);
    if (part) part.ns += ns;
    else parts.set(key, { thread, state: of, reason, ns });
  };
  /** @param {number} thread @param {number} piece @param {number} begin @param {number} end */
  const count = (thread, piece, begin, end) => {
    const ns = end - begin;
    if (piece < 0) return add(thread, 0, -1, ns);
    if (state[piece] !== 4) {
      const reason = state[piece] === 3 ? (sample[piece] < 0 ? 0 : data.samples.reason[sample[piece]]) : -1;
      return add(thread, state[piece], reason, ns);
    }
    const at = sample[piece];
    const running = Math.round((ns * mixed[0][at]) / length[piece]);
    const runnable = Math.min(ns - running, Math.round((ns * mixed[1][at]) / length[piece]));
    add(thread, 1, -1, running);
    add(thread, 2, -1, runnable);
    return add(thread, 3, 0, ns - running - runnable);
  };
  const { first } = data.times.intervals;
  const owner = threadOfRow(data, row);
  /** @typedef {{ thread: number, row: number, begin: number, end: number, up: Piece | null, depth: number }} Piece */
  /** @type {Piece[]} */
  const open = [{ thread: owner, row, begin: start[row], end: start[row] + length[row], up: null, depth: 0 }];
  let rows = 0;
  for (let piece = open.pop(); piece; piece = open.pop()) {
    const at = piece;
    let isRepeated = false;
    for (let up = at.up; up; up = up.up) isRepeated ||= up.row === at.row;
    const waker = isRepeated || at.depth >= PATH_DEPTH || rows >= PATH_ROWS ? -1 : wakerOfRow(data, at.row);
    if (waker < 0 || first[waker] === first[waker + 1]) {
      count(at.thread, at.row, at.begin, at.end);
      continue;
    }
    eachPart(data, waker, at.begin, at.end, (next, begin, end) => {
      rows++;
      if (next < 0 || wakerOfRow(data, next) < 0) count(waker, next, begin, end);
      else open.push({ thread: waker, row: next, begin, end, up: at, depth: at.depth + 1 });
    });
  }
  return [...parts.values()].sort((one, other) => other.ns - one.ns || one.thread - other.thread || one.state - other.state);
}

/**
 * Returns the time that a thread was running, runnable, blocked, and without intervals (a gap).
 * @param {Page.Data} data
 * @param {number} thread
 * @param {number} from
 * @param {number} to
 * @returns {[number, number, number, number]}
 */
export function laneShares(data, thread, from, to) {
  const { state, sample, mixed, length } = data.times.intervals;
  /** @type {[number, number, number, number]} */
  const shares = [0, 0, 0, 0];
  eachPart(data, thread, from, to, (row, begin, end) => {
    if (row < 0) shares[3] += end - begin;
    else if (state[row] !== 4) shares[state[row] - 1] += end - begin;
    else for (let s = 0; s < 3; s++) shares[s] += ((end - begin) / length[row]) * mixed[s][sample[row]];
  });
  return shares;
}

/**
 * Returns a distance between marks of an axis: 1, 2 or 5 times a power of ten.
 * @param {number} least
 * @returns {number}
 */
export function axisStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  for (const times of [1, 2, 5]) if (power * times >= least) return power * times;
  return power * 10;
}

/**
 * Formats an instant for an axis whose marks are `step` ns apart.
 * @param {number} ns
 * @param {number} step
 * @returns {string}
 */
function axisText(ns, step) {
  const digits = Math.max(0, Math.min(9, Math.ceil(9 - Math.log10(step))));
  return `${(ns / 1e9).toFixed(digits)} s`;
}

/**
 * Returns a colour as the number that a pixel of ImageData has.
 * @param {CanvasRenderingContext2D} brush Context of one pixel.
 * @param {string} colour
 * @returns {number}
 */
function pixelOf(brush, colour) {
  brush.fillStyle = "#888888";
  brush.fillStyle = colour;
  brush.fillRect(0, 0, 1, 1);
  return new Uint32Array(brush.getImageData(0, 0, 1, 1).data.buffer)[0];
}

/**
 * Returns whether white text reads better than black text on a pixel.
 * @param {number} pixel
 * @returns {boolean}
 */
function isDarkPixel(pixel) {
  const [red, green, blue] = [0, 8, 16].map((shift) => (((pixel >>> shift) & 255) / 255) ** 2.2);
  // The luminance at which both have the same contrast (WCAG 2.2).
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.179;
}

/**
 * Returns the timeline view.
 * @returns {Page.View}
 */
export function makeLanesView() {
  /** @type {Page.App} */
  let app;
  /** Threads with a lane, in the order of the lanes. @type {number[]} */
  let lanes = [];
  /** @type {LaneSums} */
  let sums = { kind: new Uint8Array(0), before: [] };
  let sumsOf = "";
  /** Samples whose stack matches the search, and the search with its selection. */
  let isMatch = new Uint8Array(0);
  let matchOf = "";
  /** Intervals that match. */
  let matchRows = new Int32Array(0);
  /** Sums of the intervals that match; null without a search. @type {LaneSums | null} */
  let matchSums = null;
  /** Whether the capture has intervals, or only CPU samples. */
  let hasIntervals = true;
  /** Time that the selection shows, by thread. @type {Float64Array} */
  let laneWeights = new Float64Array(0);
  /** Samples that the selection shows. @type {Uint8Array} */
  let isShown = new Uint8Array(0);
  /** Visible time, in ns since the start of the window. */
  let from = 0;
  let to = 1;
  /** Time range that the pointer draws. @type {[number, number] | null} */
  let drawn = null;
  /** Chosen interval, or -1, and its thread. */
  let chosen = -1;
  let chosenThread = -1;
  let laneAt = 0;
  let pending = 0;
  let saving = 0;
  /** Population by column and kind. @type {Float64Array} */
  let population = new Float64Array(0);
  let populationOf = "";
  /** @type {{ running: number, runnable: number, runnableDark: number, blocked: number, reasons: number[], hidden: number, idle: number, gap: number, paper: number } | null} */
  let pixels = null;

  const minimap = /** @type {HTMLCanvasElement} */ (element("canvas", {
    class: "minimap", role: "img", "aria-label": "Number of threads that are running, runnable and blocked, over time",
  }));
  const canvas = /** @type {HTMLCanvasElement} */ (element("canvas", {
    class: "lanes", tabindex: 0, role: "application", "aria-roledescription": "timeline", "aria-label": "Lanes of threads",
  }));
  const spacer = element("div", { class: "lanes-spacer" }, canvas);
  const scroller = element("div", { class: "lanes-scroller" }, spacer);
  const panel = element("aside", { class: "lanes-panel", "aria-label": "Chosen interval", hidden: true });
  const note = element("p", { class: "dim" });
  const matchMark = element("li", { hidden: true }, element("span", { class: "swatch swatch-match" }), "stack matches the search");
  const idleMark = element("li", {}, element("span", { class: "swatch swatch-idle" }), "blocked without work");
  const tip = element("div", { class: "tip", hidden: true });
  const fromField = /** @type {HTMLInputElement} */ (element("input", { type: "number", step: "any", min: 0 }));
  const toField = /** @type {HTMLInputElement} */ (element("input", { type: "number", step: "any", min: 0 }));
  const order = /** @type {HTMLSelectElement} */ (element("select"));
  const clear = button("Whole time", () => app.setState({ range: null }, "push"));

  const whole = () => Math.max(1, app.data.meta.lengthNs);
  const plotWidth = () => Math.max(50, canvas.clientWidth - LANE_GUTTER);
  /** @param {number} time */
  const xOf = (time) => LANE_GUTTER + ((time - from) / (to - from)) * plotWidth();
  /** @param {number} x */
  const timeAt = (x) => from + ((x - LANE_GUTTER) / plotWidth()) * (to - from);
  const range = () => drawn ?? app.state.range;

  const draw = () => {
    if (pending === 0) {
      pending = requestAnimationFrame(() => {
        pending = 0;
        drawMinimap();
        drawLanes();
      });
    }
  };

  /**
   * Moves the visible part, and keeps it in the link.
   * @param {number} begin
   * @param {number} end
   */
  const look = (begin, end) => {
    const most = whole();
    const length = Math.max(Math.min(end - begin, most), Math.min(1000, most));
    from = Math.max(0, Math.min(begin, most - length));
    to = from + length;
    draw();
    clearTimeout(saving);
    saving = window.setTimeout(() => {
      saving = 0;
      const isAll = from <= 0 && to >= most;
      const text = isAll ? "" : `${Math.round(from)}-${Math.round(to)}`;
      if (text !== app.option("timeline.window")) app.setOption("timeline.window", text, "replace");
    }, 400);
  };

  /** Returns the middle of the chosen interval if it is visible, or else of the visible time. */
  const middle = () => {
    const { start, length } = app.data.times.intervals;
    const at = chosen < 0 ? -1 : start[chosen] + length[chosen] / 2;
    return at >= from && at <= to ? at : (from + to) / 2;
  };

  /** @param {number} factor @param {number} [around] */
  const zoom = (factor, around = middle()) => look(around - (around - from) * factor, around + (to - around) * factor);

  const readColours = () => {
    const one = /** @type {HTMLCanvasElement} */ (element("canvas", { width: 1, height: 1 }));
    const brush = one.getContext("2d", { willReadFrequently: true, alpha: false });
    if (!brush) return null;
    /** @param {string} name */
    const pixel = (name) => pixelOf(brush, styleVariable(name));
    return {
      running: pixel("--running"), runnable: pixel("--runnable"), runnableDark: pixel("--hatch"),
      blocked: pixel("--blocked"), reasons: REASON_NAMES.map((_, reason) => pixel(`--blocked-${reason}`)),
      hidden: pixel("--hidden"), idle: pixel("--idle"), gap: pixel("--dim"), paper: pixel("--paper"),
    };
  };

  /**
   * Prepares a canvas for a size in CSS pixels.
   * @param {HTMLCanvasElement} of
   * @param {number} width
   * @param {number} height
   */
  const prepare = (of, width, height) => {
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
    if (of.width !== w || of.height !== h) {
      of.width = w;
      of.height = h;
    }
    const brush = of.getContext("2d", { alpha: false });
    if (!brush) throw new Error("the browser cannot draw");
    brush.setTransform(1, 0, 0, 1, 0, 0);
    brush.fillStyle = styleVariable("--paper");
    brush.fillRect(0, 0, w, h);
    return { brush, ratio, w, h };
  };

  const drawMinimap = () => {
    const { data } = app;
    const { brush, ratio, w, h } = prepare(minimap, minimap.clientWidth, MINIMAP_HEIGHT);
    const columns = Math.max(50, Math.min(Math.ceil(w / 2), Math.floor(MINIMAP_CELLS / Math.max(1, lanes.length))));
    const key = `${sumsOf}\n${columns}`;
    const step = whole() / columns;
    if (key !== populationOf) {
      populationOf = key;
      population = new Float64Array(columns * LANE_KINDS);
      const one = new Float64Array(columns * LANE_KINDS);
      for (const thread of lanes) {
        if (hasIntervals) laneColumns(data, sums, thread, 0, step, columns, one, null);
        else sampleColumns(data, isShown, thread, 0, step, columns, one);
        for (let at = 0; at < one.length; at++) population[at] += one[at];
      }
    }
    let most = 0;
    const scale = hasIntervals ? step : 1;
    for (let column = 0; column < columns; column++) {
      const at = column * LANE_KINDS;
      most = Math.max(most, (population[at] + population[at + 1] + population[at + 2]) / scale);
    }
    // Rounding errors of the sums are no thread.
    most = Math.max(1, Math.ceil(most - 1e-6));
    const variables = ["--running", "--runnable", "--blocked"];
    const tops = new Float64Array(columns);
    for (let kind = 0; kind < 3; kind++) {
      brush.fillStyle = styleVariable(variables[kind]);
      for (let column = 0; column < columns; column++) {
        const height = (population[column * LANE_KINDS + kind] / scale / most) * h;
        const x = Math.floor((column * w) / columns);
        const next = Math.floor(((column + 1) * w) / columns);
        brush.fillRect(x, h - tops[column] - height, next - x, height);
        tops[column] += height;
      }
    }
    brush.setTransform(ratio, 0, 0, ratio, 0, 0);
    const width = minimap.clientWidth;
    const text = styleVariable("--text");
    const limits = range();
    if (limits) {
      brush.globalAlpha = 0.6;
      brush.fillStyle = styleVariable("--paper");
      const [begin, end] = limits.map((time) => (time / whole()) * width);
      brush.fillRect(0, 0, begin, MINIMAP_HEIGHT);
      brush.fillRect(end, 0, width - end, MINIMAP_HEIGHT);
      brush.globalAlpha = 1;
      brush.fillStyle = styleVariable("--accent");
      brush.fillRect(begin - 1, 0, 2, MINIMAP_HEIGHT);
      brush.fillRect(end - 1, 0, 2, MINIMAP_HEIGHT);
    }
    if (from > 0 || to < whole()) {
      brush.strokeStyle = text;
      brush.lineWidth = 1.5;
      const begin = (from / whole()) * width;
      brush.strokeRect(begin, 0.75, Math.max(2, ((to - from) / whole()) * width), MINIMAP_HEIGHT - 1.5);
    }
    const said = hasIntervals ? `${formatCount(most)} ${most === 1 ? "thread" : "threads"}`
      : `${formatCount(most)} ${most === 1 ? "sample" : "samples"} in ${formatTime(step)}`;
    brush.font = "11px system-ui, sans-serif";
    brush.fillStyle = styleVariable("--paper");
    brush.globalAlpha = 0.75;
    brush.fillRect(0, 0, brush.measureText(said).width + 8, 16);
    brush.globalAlpha = 1;
    brush.fillStyle = text;
    brush.textBaseline = "top";
    brush.fillText(said, 4, 3);
  };

  /**
   * Returns the pixel of an interval of one state.
   * @param {number} row
   * @returns {number}
   */
  const colourOf = (row) => {
    if (!pixels) return 0;
    const { samples, times } = app.data;
    const kind = sums.kind[row];
    if (kind !== 2) return kind === 0 ? pixels.running : kind === 1 ? pixels.runnable : pixels.hidden;
    const sample = times.intervals.sample[row];
    if (sample < 0) return pixels.blocked;
    return samples.idle[sample] === 1 ? pixels.idle : pixels.reasons[samples.reason[sample]];
  };

  /**
   * Writes the pixels of a lane.
   * @param {Uint32Array} target
   * @param {number} width
   * @param {number} thread
   * @param {number} top First row of pixels.
   * @param {number} height
   * @param {Float64Array} columns
   * @param {Int32Array} rows
   */
  const paintLane = (target, width, thread, top, height, columns, rows) => {
    if (!pixels) return;
    const { data } = app;
    const { kind } = sums;
    const { startedNs, endedNs, hasClock } = data.threads[thread];
    const step = (to - from) / width;
    const plain = [pixels.running, pixels.runnable, pixels.blocked, pixels.hidden];
    const { gap, paper, runnableDark } = pixels;
    for (let x = 0; x < width; x++) {
      const row = rows[x];
      const time = from + x * step;
      let colour = 0;
      let isRunnable = false;
      if (row >= 0 && kind[row] !== LANE_SEVERAL) {
        colour = colourOf(row);
        isRunnable = kind[row] === 1;
        for (let y = 0; y < height; y++) {
          target[(top + y) * width + x] = isRunnable && (x + y) % 5 === 0 ? runnableDark : colour;
        }
        continue;
      }
      const isAlive = hasIntervals && (!hasClock || (time >= startedNs && time < endedNs));
      const at = x * LANE_KINDS;
      let y = height;
      let sum = 0;
      for (let k = 0; k < LANE_KINDS; k++) {
        sum += columns[at + k];
        const next = Math.max(0, height - Math.round((height * sum) / step));
        for (; y > next; y--) {
          target[(top + y - 1) * width + x] = k === 1 && (x + y) % 5 === 0 ? runnableDark : plain[k];
        }
      }
      // Time that no interval covers is a gap.
      if (isAlive) for (; y > 0; y--) target[(top + y - 1) * width + x] = (x + y) % 6 === 0 ? gap : paper;
    }
  };

  /** Finds the intervals whose stack matches the search. */
  const prepareMatches = () => {
    const { data, state } = app;
    const key = `${state.search}\n${sumsOf}`;
    if (key === matchOf) return;
    matchOf = key;
    matchMark.hidden = state.search === "";
    matchSums = null;
    matchRows = new Int32Array(0);
    if (state.search === "") return;
    const marks = markStacks(data.tree, matchFunctions(data.functions, state.search));
    isMatch = Uint8Array.from(data.samples.node, (node, sample) => marks[node] & isShown[sample]);
    const { count, sample, length, state: of } = data.times.intervals;
    const before = new Float64Array(count + 1);
    const found = new Int32Array(count);
    let matches = 0;
    for (let row = 0; row < count; row++) {
      const isOne = of[row] !== 4 && sample[row] >= 0 && isMatch[sample[row]] === 1;
      before[row + 1] = before[row] + (isOne ? length[row] : 0);
      if (isOne) found[matches++] = row;
    }
    matchRows = found.slice(0, matches);
    matchSums = { kind: sums.kind, before: [before, before, before, before] };
  };

  /**
   * Draws a line above the parts of a lane that match the search.
   * @param {CanvasRenderingContext2D} brush
   * @param {number} thread
   * @param {number} top
   */
  const drawMatches = (brush, thread, top) => {
    if (!matchSums) return;
    const { timed } = app.data.times;
    const width = Math.floor(plotWidth());
    const columns = new Float64Array(width * LANE_KINDS);
    laneColumns(app.data, matchSums, thread, from, (to - from) / width, width, columns, null);
    brush.fillStyle = styleVariable("--text");
    for (let x = 0; x < width; x++) if (columns[x * LANE_KINDS] > 0) brush.fillRect(LANE_GUTTER + x, top, 1, 3);
    const high = timed.first[thread + 1];
    for (let mark = rowAtTime(timed.time, timed.first[thread], high, from) + 1; mark < high && timed.time[mark] <= to; mark++) {
      if (isMatch[timed.sample[mark]] === 1) brush.fillRect(xOf(timed.time[mark]) - 1, top, 2, 3);
    }
  };

  const drawLanes = () => {
    const { data } = app;
    const { intervals, timed, events } = data.times;
    scroller.style.height = `${LANE_AXIS + Math.max(3, lanes.length) * LANE_HEIGHT + 4}px`;
    const width = scroller.clientWidth;
    const height = scroller.clientHeight;
    if (width === 0 || height === 0) return;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    spacer.style.height = `${Math.max(height, LANE_AXIS + lanes.length * LANE_HEIGHT)}px`;
    const { brush, ratio } = prepare(canvas, width, height);
    pixels ??= readColours();
    if (!pixels) return;
    const scroll = scroller.scrollTop;
    const firstLane = Math.floor(scroll / LANE_HEIGHT);
    const lastLane = Math.min(lanes.length, Math.ceil((scroll + height - LANE_AXIS) / LANE_HEIGHT));
    const plot = Math.max(1, Math.round(plotWidth() * ratio));
    const laneHeight = Math.max(1, Math.round((LANE_HEIGHT - 4) * ratio));
    const image = new ImageData(plot, laneHeight);
    const target = new Uint32Array(image.data.buffer);
    const columns = new Float64Array(plot * LANE_KINDS);
    const rows = new Int32Array(plot);
    for (let lane = firstLane; lane < lastLane; lane++) {
      const top = LANE_AXIS + lane * LANE_HEIGHT - scroll + 2;
      target.fill(pixels.paper);
      if (hasIntervals) laneColumns(data, sums, lanes[lane], from, (to - from) / plot, plot, columns, rows);
      else {
        sampleColumns(data, isShown, lanes[lane], from, (to - from) / plot, plot, columns);
        // A column with a sample has its full height.
        for (let column = 0; column < plot; column++) columns[column * LANE_KINDS] *= to - from;
        rows.fill(-1);
      }
      paintLane(target, plot, lanes[lane], 0, laneHeight, columns, rows);
      brush.putImageData(image, Math.round(LANE_GUTTER * ratio), Math.round(top * ratio));
    }
    brush.setTransform(ratio, 0, 0, ratio, 0, 0);
    const text = styleVariable("--text");
    const dim = styleVariable("--dim");
    brush.font = "12px system-ui, sans-serif";
    brush.textBaseline = "middle";
    const perNs = plotWidth() / (to - from);
    for (let lane = firstLane; lane < lastLane; lane++) {
      const thread = lanes[lane];
      const top = LANE_AXIS + lane * LANE_HEIGHT - scroll;
      const low = intervals.first[thread];
      const high = intervals.first[thread + 1];
      const begin = Math.max(low, rowAtTime(intervals.start, low, high, from));
      const end = rowAtTime(intervals.start, low, high, to) + 1;
      if (end - begin < plotWidth() / 8) {
        for (let row = begin; row < end; row++) {
          const left = Math.max(LANE_GUTTER, xOf(intervals.start[row]));
          const right = xOf(intervals.start[row] + intervals.length[row]);
          if (right - left < 60 || sums.kind[row] >= LANE_HIDDEN) continue;
          brush.fillStyle = isDarkPixel(colourOf(row)) ? "#ffffff" : "#000000";
          textIn(brush, intervalTitle(data, row), left + 4, top + LANE_HEIGHT / 2, Math.min(right, width) - left - 8);
        }
      }
      const marks = timed.first.length > 0 ? [timed.first[thread], timed.first[thread + 1]] : [0, 0];
      const firstMark = rowAtTime(timed.time, marks[0], marks[1], from) + 1;
      const lastMark = rowAtTime(timed.time, marks[0], marks[1], to) + 1;
      if (hasIntervals && lastMark - firstMark < plotWidth() / 12) {
        brush.fillStyle = text;
        for (let mark = firstMark; mark < lastMark; mark++) {
          if (isShown[timed.sample[mark]] === 1) brush.fillRect(xOf(timed.time[mark]) - 0.5, top + LANE_HEIGHT - 6, 1, 4);
        }
      }
      if (events.first.length > 0) {
        brush.fillStyle = text;
        for (let event = events.first[thread]; event < events.first[thread + 1]; event++) {
          // Lanes show starts and ends.
          if (events.change[event] < 3) continue;
          const x = xOf(events.time[event]);
          if (x >= LANE_GUTTER && x <= width) brush.fillRect(x - 1, top + 1, 2, LANE_HEIGHT - 2);
        }
      }
      drawMatches(brush, thread, top);
      brush.fillStyle = styleVariable(lane === laneAt && document.activeElement === canvas ? "--raised" : "--paper");
      brush.fillRect(0, top, LANE_GUTTER, LANE_HEIGHT);
      brush.fillStyle = text;
      textIn(brush, data.threads[thread].label, 6, top + LANE_HEIGHT / 2, LANE_GUTTER - 12);
    }
    if (chosen >= 0) drawChosen(brush, scroll, perNs);
    const limits = range();
    if (limits) {
      brush.globalAlpha = 0.6;
      brush.fillStyle = styleVariable("--paper");
      const [left, right] = [Math.max(LANE_GUTTER, xOf(limits[0])), Math.min(width, xOf(limits[1]))];
      brush.fillRect(LANE_GUTTER, LANE_AXIS, Math.max(0, Math.min(left, width) - LANE_GUTTER), height);
      if (right < width) brush.fillRect(Math.max(right, LANE_GUTTER), LANE_AXIS, width, height);
      brush.globalAlpha = 1;
    }
    brush.fillStyle = styleVariable("--paper");
    brush.fillRect(0, 0, width, LANE_AXIS);
    const step = axisStep(((to - from) * 90) / plotWidth());
    brush.fillStyle = dim;
    for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
      const x = xOf(time);
      brush.fillRect(x, LANE_AXIS - 5, 1, 5);
      if (x < width - 40) brush.fillText(axisText(time, step), x + 3, LANE_AXIS / 2);
    }
    brush.fillText(`${formatCount(lanes.length)} ${lanes.length === 1 ? "thread" : "threads"}`, 6, LANE_AXIS / 2);
  };

  /**
   * Draws the frame of the chosen interval, and the wake-up that ended it.
   * @param {CanvasRenderingContext2D} brush
   * @param {number} scroll
   * @param {number} perNs
   */
  const drawChosen = (brush, scroll, perNs) => {
    const { start, length } = app.data.times.intervals;
    const lane = lanes.indexOf(chosenThread);
    if (lane < 0) return;
    /** @param {number} of */
    const middle = (of) => LANE_AXIS + of * LANE_HEIGHT - scroll + LANE_HEIGHT / 2;
    const left = Math.max(LANE_GUTTER, xOf(start[chosen]));
    const right = Math.max(left + 2, xOf(start[chosen] + length[chosen]));
    brush.strokeStyle = styleVariable("--text");
    brush.lineWidth = 2;
    if (right >= LANE_GUTTER) brush.strokeRect(left, middle(lane) - LANE_HEIGHT / 2 + 1, Math.max(2, Math.min(right - left, length[chosen] * perNs)), LANE_HEIGHT - 2);
    const waker = lanes.indexOf(wakerOfRow(app.data, chosen));
    if (waker < 0 || waker === lane) return;
    const x = xOf(start[chosen] + length[chosen]);
    if (x < LANE_GUTTER) return;
    const up = waker < lane ? -1 : 1;
    const tipY = middle(lane) + (up * LANE_HEIGHT) / 2;
    brush.beginPath();
    brush.moveTo(x, middle(waker));
    brush.lineTo(x, tipY);
    brush.moveTo(x - 4, tipY + up * 6);
    brush.lineTo(x, tipY);
    brush.lineTo(x + 4, tipY + up * 6);
    brush.stroke();
  };

  /**
   * Returns the interval under a place of the canvas: of several, the one with the largest part.
   * @param {number} x
   * @param {number} y
   * @returns {[number, number] | null} Row and thread.
   */
  const intervalAt = (x, y) => {
    const lane = Math.floor((y - LANE_AXIS + scroller.scrollTop) / LANE_HEIGHT);
    if (x < LANE_GUTTER || y < LANE_AXIS || lane < 0 || lane >= lanes.length) return null;
    const near = ((to - from) / plotWidth()) * 2;
    let best = -1;
    let most = 0;
    eachPart(app.data, lanes[lane], Math.max(0, timeAt(x) - near), timeAt(x) + near, (row, begin, end) => {
      if (row >= 0 && end - begin > most) {
        most = end - begin;
        best = row;
      }
    });
    return best < 0 ? null : [best, lanes[lane]];
  };

  /** @param {number} row @param {number} thread */
  const choose = (row, thread, how = /** @type {"push" | "replace"} */ ("push")) => {
    const text = row < 0 ? "" : `${app.data.threads[thread].key}@${app.data.times.intervals.start[row]}`;
    app.setOption("timeline.at", text, how);
  };

  const drawPanel = () => {
    panel.hidden = chosen < 0;
    if (chosen < 0) {
      panel.replaceChildren();
      return;
    }
    const { data } = app;
    const { intervals } = data.times;
    const row = chosen;
    const begin = intervals.start[row];
    const length = intervals.length[row];
    const state = intervals.state[row];
    const sample = state === 4 ? -1 : intervals.sample[row];
    const wait = sample < 0 ? -1 : data.samples.wait[sample];
    const children = [];
    children.push(element("h2", {}, element("bdi", {}, data.threads[chosenThread].label)));
    const facts = element("dl");
    /** @param {string} name @param {string} value */
    const fact = (name, value) => facts.append(element("dt", {}, name), element("dd", {}, element("bdi", {}, value)));
    fact("State", STATE_NAMES[state]);
    fact("Time", `${formatTime(length)}, from ${(begin / 1e9).toFixed(6)} s to ${((begin + length) / 1e9).toFixed(6)} s`);
    if (state === 4) {
      const [running, runnable, blocked] = intervals.mixed.map((column) => column[intervals.sample[row]]);
      fact("Divided into", `running ${formatTime(running)}, runnable ${formatTime(runnable)}, blocked ${formatTime(blocked)}. `
        + `The single stays are shorter than ${formatTime(Math.max(0, data.meta.timelineLeastNs))}.`);
    }
    if (wait >= 0) {
      fact("Waited for", waitText(data, wait));
      const { holder, endedBy } = data.waits;
      if (holder[wait] >= 0) fact("Held by", data.names[holder[wait]]);
      if (endedBy[wait] >= 0) fact("Ended by", data.names[endedBy[wait]]);
    }
    const waker = wakerRow(data, row);
    if (waker >= 0) fact("Woken by", wakerText(data, waker));
    children.push(facts);
    children.push(element("div", { class: "actions" },
      button("Previous", () => step(-1)), button("Next", () => step(1)),
      button("Only this time", () => app.setState({ range: [begin, begin + length] }, "push")),
      button("Only this thread", () => app.setState({ threads: [data.threads[chosenThread].key] }, "push")),
      button("Zoom", () => look(begin - length / 2, begin + length * 1.5)),
      button("Close", () => {
        choose(-1, -1);
        canvas.focus();
      })));
    if (state === 3 && waker >= 0) children.push(...chainOf(row), ...pathOf(row));
    if (sample >= 0) children.push(stackList("Stack", data.samples.node[sample]));
    else if (state === 1) children.push(...samplesOf(chosenThread, begin, begin + length));
    else if (state !== 4) children.push(element("p", { class: "dim" }, "The interval is too short to have a stack (see -m)."));
    if (waker >= 0 && data.wakers.node[waker] > 0) children.push(stackList("Stack of the waker", data.wakers.node[waker]));
    panel.replaceChildren(...children);
  };

  /** @param {string} title @param {number} node */
  const stackList = (title, node) => {
    const names = stackNames(app.data, node);
    return element("details", { open: true }, element("summary", {}, `${title} (the last function first)`), stackElement(names),
      button("Copy as folded text", () => app.copy(names.join(";"))));
  };

  /** @param {number} thread @param {number} begin @param {number} end */
  const samplesOf = (thread, begin, end) => {
    const { timed } = app.data.times;
    if (timed.count === 0) return [];
    const low = timed.first[thread];
    const high = timed.first[thread + 1];
    const firstSample = rowAtTime(timed.time, low, high, begin - 0.5) + 1;
    const lastSample = rowAtTime(timed.time, low, high, end) + 1;
    /** @type {Map<number, number>} */
    const counts = new Map();
    for (let at = firstSample; at < lastSample; at++) {
      const node = app.data.samples.node[timed.sample[at]];
      counts.set(node, (counts.get(node) ?? 0) + 1);
    }
    const total = lastSample - firstSample;
    if (total === 0) return [element("p", { class: "dim" }, "No CPU sample lies in this interval.")];
    const list = element("ul");
    const sorted = [...counts].sort((one, other) => other[1] - one[1] || one[0] - other[0]);
    for (const [node, count] of sorted.slice(0, PANEL_ROWS)) {
      const names = stackNames(app.data, node).reverse();
      list.append(element("li", {}, `${formatCount(count)}: `, element("bdi", {}, names.slice(0, 4).join(" ← ") || "[no stack]")));
    }
    return [element("h3", {}, `${formatCount(total)} CPU ${total === 1 ? "sample" : "samples"}`), list];
  };

  /**
   * Lists the wakers of wakers, with the states of each during the wait.
   * @param {number} row
   */
  const chainOf = (row) => {
    const { data } = app;
    const { start, length, state } = data.times.intervals;
    const list = element("ol", { class: "chain" });
    const seen = new Set([row]);
    let begin = start[row];
    let end = start[row] + length[row];
    for (let at = row, steps = 0; steps < CHAIN_STEPS; steps++) {
      const thread = wakerOfRow(data, at);
      if (thread < 0) break;
      const [running, runnable, blocked, gap] = laneShares(data, thread, begin, end);
      const whole = end - begin;
      const shares = [["running", running], ["runnable", runnable], ["blocked", blocked], ["not recorded", gap]]
        .filter(([, ns]) => Number(ns) > 0).map(([name, ns]) => `${name} ${formatShare(Number(ns), whole)}`);
      let longest = -1;
      let most = 0;
      eachPart(data, thread, begin, end, (part, from, to) => {
        if (part >= 0 && state[part] === 3 && to - from > most) {
          most = to - from;
          longest = part;
        }
      });
      const item = element("li", {}, element("bdi", {}, data.threads[thread].label), ` meanwhile: ${shares.join(", ")}.`);
      if (longest >= 0) {
        const other = longest;
        item.append(" ", button(`Longest wait: ${formatTime(most)}, ${intervalTitle(data, longest)}`, () => choose(other, thread), { class: "link" }));
      }
      list.append(item);
      if (longest < 0 || seen.has(longest)) break;
      seen.add(longest);
      begin = Math.max(begin, start[longest]);
      end = Math.min(end, start[longest] + length[longest]);
      at = longest;
    }
    if (list.childElementCount === 0) return [];
    return [element("h3", {}, "Chain of wakers"), list];
  };

  /** @param {number} row */
  const pathOf = (row) => {
    const { data } = app;
    const parts = waitPath(data, row);
    const length = data.times.intervals.length[row];
    const body = element("tbody");
    for (const { thread, state, reason, ns } of parts.slice(0, PANEL_ROWS)) {
      const what = state === 0 ? "not recorded" : reason > 0 ? `blocked: ${REASON_NAMES[reason]}` : STATE_NAMES[state];
      body.append(element("tr", {}, element("th", { scope: "row" }, element("bdi", {}, data.threads[thread].label), `: ${what}`),
        element("td", {}, formatTime(ns)), element("td", {}, formatShare(ns, length))));
    }
    const rest = parts.slice(PANEL_ROWS).reduce((sum, part) => sum + part.ns, 0);
    if (rest > 0) {
      body.append(element("tr", {}, element("th", { scope: "row", class: "dim" }, `${parts.length - PANEL_ROWS} more`),
        element("td", {}, formatTime(rest)), element("td", {}, formatShare(rest, length))));
    }
    return [element("table", { class: "path" }, element("caption", {}, "The time of this wait, given to the threads that were waited for"), body)];
  };

  /**
   * Chooses the next interval of the lane that the selection shows.
   * @param {number} direction
   */
  const step = (direction) => {
    const thread = lanes[laneAt];
    if (thread === undefined) return;
    const { first, start } = app.data.times.intervals;
    const [low, high] = [first[thread], first[thread + 1]];
    let row = chosen >= 0 && chosenThread === thread ? chosen + direction : rowAtTime(start, low, high, Math.max(from, app.state.range?.[0] ?? 0)) + (direction > 0 ? 1 : 0);
    while (row >= low && row < high && sums.kind[row] === LANE_HIDDEN) row += direction;
    if (row < low || row >= high) {
      app.say("No more intervals in this lane.");
      return;
    }
    goTo(row, thread);
  };

  /**
   * Chooses an interval, and moves to it.
   * @param {number} row
   * @param {number} thread
   */
  const goTo = (row, thread) => {
    const { start, length } = app.data.times.intervals;
    const [begin, end] = [start[row], start[row] + length[row]];
    if (begin < from || end > to) {
      const size = Math.max(to - from, length[row] * 1.2);
      look((begin + end) / 2 - size / 2, (begin + end) / 2 + size / 2);
    }
    choose(row, thread, "replace");
    app.say(`${app.data.threads[thread].label}: ${intervalTitle(app.data, row)}, ${formatTime(length[row])}`);
  };

  const showLane = () => {
    const top = laneAt * LANE_HEIGHT;
    const room = scroller.clientHeight - LANE_AXIS - LANE_HEIGHT;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top > scroller.scrollTop + room) scroller.scrollTop = top - room;
    const thread = lanes[laneAt];
    if (thread !== undefined) app.say(app.data.threads[thread].label);
    draw();
  };

  /** @param {PointerEvent} down @param {HTMLCanvasElement} of @param {(x: number) => number} time @param {() => void} click */
  const brushFrom = (down, of, time, click) => {
    if (down.button !== 0) return;
    const left = of.getBoundingClientRect().left;
    const most = whole();
    /** @param {number} x */
    const clamp = (x) => Math.max(0, Math.min(most, time(x - left)));
    const at = clamp(down.clientX);
    let anchor = at;
    let moved = false;
    // An edge of the range that is near can be dragged.
    const limits = app.state.range;
    const near = Math.abs(clamp(down.clientX + 5) - clamp(down.clientX - 5)) / 2;
    if (limits && Math.abs(at - limits[0]) <= near) anchor = limits[1];
    else if (limits && Math.abs(at - limits[1]) <= near) anchor = limits[0];
    of.setPointerCapture(down.pointerId);
    /** @param {PointerEvent} event */
    const move = (event) => {
      if (!moved && Math.abs(event.clientX - down.clientX) < 4) return;
      moved = true;
      const other = clamp(event.clientX);
      drawn = [Math.round(Math.min(anchor, other)), Math.round(Math.max(anchor, other))];
      draw();
    };
    const end = () => {
      of.removeEventListener("pointermove", move);
      of.removeEventListener("pointerup", end);
      of.removeEventListener("pointercancel", cancel);
      const made = drawn;
      drawn = null;
      if (!moved) click();
      else if (made && made[1] > made[0]) app.setState({ range: made }, "push");
      else draw();
    };
    const cancel = () => {
      moved = true;
      drawn = null;
      end();
    };
    of.addEventListener("pointermove", move);
    of.addEventListener("pointerup", end);
    of.addEventListener("pointercancel", cancel);
  };

  /** @param {WheelEvent} event @param {number} around */
  const wheel = (event, around) => {
    const size = event.deltaMode === 1 ? 16 : 1;
    const isPan = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const delta = (isPan ? event.deltaX || event.deltaY : event.deltaY) * size;
    if (isPan) {
      const by = (delta / plotWidth()) * (to - from);
      look(from + by, to + by);
    } else {
      zoom(2 ** (delta / 300), around);
    }
    event.preventDefault();
  };

  const setRangeFromFields = () => {
    const [begin, end] = [fromField, toField].map((field) => Math.round(Number(field.value) * 1e9));
    const limits = [Math.max(0, begin), Math.min(whole(), end)];
    if (fromField.value === "" || toField.value === "" || !(limits[1] > limits[0])) {
      app.say("The time range needs an end after its start.");
      return;
    }
    app.setState({ range: [limits[0], limits[1]] }, "push");
  };

  /** Finds lanes and their sums, if the selection is a new one. */
  const prepareSums = () => {
    hasIntervals = app.data.times.intervals.count > 0;
    const { data, state } = app;
    const without = { ...state, range: null };
    const key = JSON.stringify([state.threads, state.states, state.reasons, state.idle, state.filters, state.pivot]);
    if (key === sumsOf) return;
    sumsOf = key;
    const selected = select(data, without);
    isShown = new Uint8Array(data.samples.count);
    const weights = new Float64Array(data.threads.length);
    for (let sample = 0; sample < data.samples.count; sample++) {
      const shows = selected.weight[sample] > 0 || selected.count[sample] > 0;
      if (!shows) continue;
      isShown[sample] = 1;
      weights[data.samples.thread[sample]] += selected.weight[sample];
    }
    const isStateShown = new Uint8Array(4);
    const needsStack = state.pivot !== "" || state.filters.some((filter) => filter.kind === "only");
    for (const of of [1, 2, 3]) {
      const isAsked = state.states.length === 0 || state.states.includes(STATE_NAMES[of]);
      const hasReason = of !== 3 || state.reasons.length === 0 || state.reasons.includes(REASON_NAMES[0]);
      isStateShown[of] = isAsked && hasReason && !needsStack ? 1 : 0;
    }
    sums = sumLanes(data, isShown, isStateShown);
    const keys = new Set(state.threads);
    const { timed, intervals: { first } } = data.times;
    let left = 0;
    lanes = [];
    for (let thread = 0; thread < data.threads.length; thread++) {
      if (keys.size > 0 && !keys.has(data.threads[thread].key)) continue;
      if (weights[thread] > 0 || keys.has(data.threads[thread].key)) lanes.push(thread);
      else if (first[thread] < first[thread + 1] || (!hasIntervals && timed.first[thread] < timed.first[thread + 1])) left++;
    }
    laneWeights = weights;
    const lost = data.losses.times;
    note.textContent = [
      left === 0 ? "" : left === 1 ? "1 thread has no lane: the filters hide all of its time."
        : `${formatCount(left)} threads have no lane: the filters hide all of their time.`,
      lost === 0 ? "" : `${formatCount(lost)} rows of the timeline were lost. They are gaps in the lanes.`,
    ].join(" ").trim();
    note.hidden = note.textContent === "";
  };

  const sortLanes = () => {
    const { threads } = app.data;
    const by = app.option("timeline.order");
    order.value = by;
    /** @param {number} one @param {number} other */
    const name = (one, other) => (threads[one].name < threads[other].name ? -1 : threads[one].name > threads[other].name ? 1 : 0);
    lanes.sort((one, other) => {
      if (by === "start") return threads[one].startedNs - threads[other].startedNs || one - other;
      return (by === "name" ? name(one, other) : 0) || laneWeights[other] - laneWeights[one] || one - other;
    });
  };

  return {
    id: "timeline",
    title: "Timeline",
    isAvailable: (of) => of.data.times.intervals.count > 0 || of.data.times.timed.count > 0,
    mount(root, given) {
      app = given;
      from = 0;
      to = whole();
      const labels = [element("label", {}, "Time range from ", fromField, " s"), element("label", {}, "to ", toField, " s")];
      for (const field of [fromField, toField]) {
        field.addEventListener("change", () => {
          if (fromField.value !== "" && toField.value !== "") setRangeFromFields();
        });
      }
      const legend = element("ul", { class: "legend" });
      const states = app.data.times.intervals.count === 0 ? [["running", "CPU samples"]] : [["running", "running"], ["runnable", "runnable: waiting for a CPU"], ["blocked", "blocked"],
        ["hidden", "hidden: idle, or by a filter"], ["gap", "not recorded"]];
      for (const [name, words] of states) {
        legend.append(element("li", {}, element("span", { class: `swatch swatch-${name}` }), words));
      }
      legend.append(idleMark, matchMark);
      const tools = element("div", { class: "actions" },
        button("Zoom in", () => zoom(0.5), { title: "w" }), button("Zoom out", () => zoom(2), { title: "s" }),
        button("Zoom to all", () => look(0, whole()), { title: "0" }), ...labels, clear, element("label", {}, "Order of lanes: ", order));
      for (const [value, words] of [["", "most time first"], ["start", "first started first"], ["name", "by name"]]) {
        order.append(element("option", { value }, words));
      }
      order.addEventListener("change", () => app.setOption("timeline.order", order.value, "replace"));
      root.append(tools, legend, note,
        element("div", { class: "lanes-and-panel" }, element("div", { class: "lanes-column" }, minimap, scroller), panel), tip,
        element("p", { class: "dim" }, "Drag to choose a time range; it filters every view. Click an interval for its stack and its waker. "
          + "Ctrl and the wheel zoom, Shift and the wheel pan."));
      new ResizeObserver(draw).observe(scroller);
      scroller.addEventListener("scroll", draw, { passive: true });
      for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
        matchMedia(query).addEventListener("change", () => {
          pixels = null;
          draw();
        });
      }
      minimap.addEventListener("pointerdown", (event) => {
        brushFrom(event, minimap, (x) => (x / minimap.clientWidth) * whole(), () => {
          const size = to - from;
          const middle = ((event.clientX - minimap.getBoundingClientRect().left) / minimap.clientWidth) * whole();
          look(middle - size / 2, middle + size / 2);
        });
      });
      minimap.addEventListener("wheel", (event) => {
        wheel(event, ((event.clientX - minimap.getBoundingClientRect().left) / minimap.clientWidth) * whole());
      }, { passive: false });
      canvas.addEventListener("wheel", (event) => {
        const isZoom = event.ctrlKey || event.metaKey;
        if (!isZoom && !event.shiftKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
        wheel(event, timeAt(event.clientX - canvas.getBoundingClientRect().left));
      }, { passive: false });
      canvas.addEventListener("pointerdown", (event) => {
        tip.hidden = true;
        const box = canvas.getBoundingClientRect();
        const y = event.clientY - box.top;
        const lane = Math.floor((y - LANE_AXIS + scroller.scrollTop) / LANE_HEIGHT);
        if (lane >= 0 && lane < lanes.length) laneAt = lane;
        if (event.clientX - box.left < LANE_GUTTER) {
          draw();
          return;
        }
        brushFrom(event, canvas, timeAt, () => {
          const found = intervalAt(event.clientX - box.left, y);
          if (found) choose(found[0], found[1]);
          else if (chosen >= 0) choose(-1, -1);
        });
      });
      canvas.addEventListener("dblclick", () => {
        if (chosen < 0) return;
        const { start, length } = app.data.times.intervals;
        look(start[chosen] - length[chosen] / 2, start[chosen] + length[chosen] * 1.5);
      });
      canvas.addEventListener("pointermove", (event) => {
        const box = canvas.getBoundingClientRect();
        const found = event.buttons === 0 ? intervalAt(event.clientX - box.left, event.clientY - box.top) : null;
        tip.hidden = !found;
        if (!found) return;
        const { length } = app.data.times.intervals;
        const title = intervalTitle(app.data, found[0]).slice(0, MOST_LETTERS);
        tip.textContent = `${app.data.threads[found[1]].label}: ${title}, ${formatTime(length[found[0]])}`;
        tip.style.left = `${Math.min(event.clientX + 12, window.innerWidth - tip.offsetWidth - 8)}px`;
        tip.style.top = `${Math.min(event.clientY + 16, window.innerHeight - tip.offsetHeight - 8)}px`;
      });
      canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
      for (const kind of ["focus", "blur"]) canvas.addEventListener(kind, draw);
    },
    update(given) {
      app = given;
      prepareSums();
      prepareMatches();
      sortLanes();
      idleMark.hidden = app.state.idle === "hide" || !hasIntervals;
      tip.hidden = true;
      const { data, state } = app;
      const limits = state.range;
      fromField.value = limits ? String(limits[0] / 1e9) : "";
      toField.value = limits ? String(limits[1] / 1e9) : "";
      clear.hidden = !limits;
      const shown = /^(\d+)-(\d+)$/.exec(app.option("timeline.window"));
      const [begin, end] = shown ? [Number(shown[1]), Number(shown[2])] : [0, whole()];
      // A move that is not yet in the link goes on.
      if (saving === 0) [from, to] = end > begin ? [begin, Math.min(end, whole())] : [0, whole()];
      const text = app.option("timeline.at");
      const cut = text.lastIndexOf("@");
      const thread = cut < 0 ? -1 : data.threads.findIndex(({ key }) => key === text.slice(0, cut));
      chosen = -1;
      chosenThread = thread;
      if (thread >= 0) {
        const { first, start } = data.times.intervals;
        const row = rowAtTime(start, first[thread], first[thread + 1], Number(text.slice(cut + 1)));
        if (row >= first[thread]) chosen = row;
        if (lanes.includes(thread)) laneAt = lanes.indexOf(thread);
      }
      laneAt = Math.min(laneAt, Math.max(0, lanes.length - 1));
      drawPanel();
      draw();
    },
    key(event) {
      if (event.ctrlKey || event.altKey || event.metaKey) return false;
      const isCanvas = event.target === canvas || event.target === document.body;
      if (!isCanvas && (event.key === "Enter" || event.key.startsWith("Arrow"))) return false;
      const size = to - from;
      /** @type {Record<string, () => void>} */
      const acts = {
        w: () => zoom(0.5), s: () => zoom(2), a: () => look(from - size / 4, to - size / 4), d: () => look(from + size / 4, to + size / 4),
        0: () => look(0, whole()),
        ArrowLeft: () => step(-1), ArrowRight: () => step(1),
        ArrowUp: () => { laneAt = Math.max(0, laneAt - 1); showLane(); },
        ArrowDown: () => { laneAt = Math.min(lanes.length - 1, laneAt + 1); showLane(); },
        r: () => {
          const { start, length } = app.data.times.intervals;
          if (chosen >= 0) app.setState({ range: [start[chosen], start[chosen] + length[chosen]] }, "push");
          else app.setState({ range: [Math.round(from), Math.round(to)] }, "push");
        },
        Enter: () => panel.querySelector("button")?.focus(),
      };
      if (event.key === "Escape" && chosen >= 0) {
        choose(-1, -1);
        canvas.focus();
        return true;
      }
      if (!Object.hasOwn(acts, event.key)) return false;
      acts[event.key]();
      return true;
    },
    stepMatch(direction) {
      if (matchRows.length === 0) return;
      const last = matchRows.length - 1;
      const at = matchPlaceOf(matchRows, chosen);
      const next = chosen < 0 || at < 0 || matchRows[at] !== chosen ? (direction > 0 ? at + 1 : at) : at + direction;
      const row = matchRows[next < 0 ? last : next > last ? 0 : next];
      const thread = threadOfRow(app.data, row);
      laneAt = Math.max(0, lanes.indexOf(thread));
      showLane();
      goTo(row, thread);
    },
    matchPlace() {
      if (matchRows.length === 0) return "";
      const at = matchPlaceOf(matchRows, chosen);
      return `${at >= 0 && matchRows[at] === chosen ? formatCount(at + 1) : "–"}/${formatCount(matchRows.length)}`;
    },
    drawn: () => sums,
    keys: [
      ["w s", "zoom in and out"], ["a d", "go left and right"], ["0", "show the whole time"],
      ["↑ ↓", "choose a lane"], ["← →", "go through the intervals of the lane"], ["Enter", "go to the details of the interval"],
      ["r", "use the time of the interval, or the visible time, as time range"],
    ],
  };
}

/**
 * Returns the last place in sorted rows whose row is at most `row`, or -1.
 * @param {Int32Array} rows
 * @param {number} row
 * @returns {number}
 */
function matchPlaceOf(rows, row) {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (rows[middle] <= row) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/**
 * Returns the thread of an interval.
 * @param {Page.Data} data
 * @param {number} row
 * @returns {number}
 */
function threadOfRow(data, row) {
  return matchPlaceOf(data.times.intervals.first, row);
}

/**
 * Returns the title of an interval: its state, or the text of its wait.
 * @param {Page.Data} data
 * @param {number} row
 * @returns {string}
 */
function intervalTitle(data, row) {
  const { state, sample } = data.times.intervals;
  if (state[row] !== 3 || sample[row] < 0) return STATE_NAMES[state[row]];
  const wait = data.samples.wait[sample[row]];
  return wait < 0 ? STATE_NAMES[3] : waitText(data, wait);
}

/**
 * Draws a text that is cut to a width.
 * @param {CanvasRenderingContext2D} brush
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {number} width
 */
function textIn(brush, text, x, y, width) {
  let shown = text.slice(0, MOST_LETTERS);
  const size = brush.measureText(shown).width;
  if (size > width) {
    // Letters have about the same width.
    const fits = Math.floor((shown.length * width) / size) - 1;
    if (fits < 2) return;
    shown = `${shown.slice(0, fits)}…`;
  }
  brush.fillText(shown, x, y);
}
