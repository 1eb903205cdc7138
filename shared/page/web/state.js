// The state of the page, and its form in the URL's hash.

import { initialState } from "./selection.js";

/** Time in ms until a replaced state is in the URL. Browsers limit how often it may change. */
const REPLACE_DELAY = 250;
/** Longest hash that is put into the URL with the options of views, such as the zoom. */
const LONGEST_HASH = 0x10000;
const FILTER_KINDS = /** @type {const} */ (["only", "without", "hide"]);

/**
 * Returns the hash of a state, without `#`. A state that was just opened has an empty hash.
 * @param {Page.State} state
 * @returns {string}
 */
export function stateToHash(state) {
  const initial = initialState();
  const fields = new URLSearchParams();
  if (state.view !== initial.view) fields.append("view", state.view);
  for (const key of state.threads) fields.append("thread", key);
  for (const name of state.states) fields.append("state", name);
  for (const name of state.reasons) fields.append("reason", name);
  if (state.idle !== initial.idle) fields.append("idle", state.idle);
  if (state.range !== null) fields.append("range", state.range.join("-"));
  for (const { kind, name } of state.filters) fields.append(kind, name);
  if (state.pivot !== "") fields.append("pivot", state.pivot);
  if (state.search !== "") fields.append("search", state.search);
  for (const [name, value] of state.options) fields.append(name, value);
  return fields.toString();
}

/**
 * Returns the state of a hash. Parts that do not make sense are left out.
 * @param {string} hash With or without `#`.
 * @returns {Page.State}
 */
export function hashToState(hash) {
  const state = initialState();
  for (const [name, value] of new URLSearchParams(hash.replace(/^#/, ""))) {
    const filter = FILTER_KINDS.find((kind) => kind === name);
    if (filter !== undefined) state.filters.push({ kind: filter, name: value });
    else if (name === "view") state.view = value;
    else if (name === "thread") state.threads.push(value);
    else if (name === "state") state.states.push(value);
    else if (name === "reason") state.reasons.push(value);
    else if (name === "idle") state.idle = value === "show" ? "show" : "hide";
    else if (name === "range") state.range = parseRange(value);
    else if (name === "pivot") state.pivot = value;
    else if (name === "search") state.search = value;
    else if (name.includes(".") && value !== "") state.options.set(name, value);
  }
  return state;
}

/**
 * @param {string} text
 * @returns {[number, number] | null}
 */
function parseRange(text) {
  const match = /^(\d{1,15})-(\d{1,15})$/.exec(text);
  if (match === null) return null;
  const [from, to] = [Number(match[1]), Number(match[2])];
  return from < to ? [from, to] : null;
}

/** Holds the state, and keeps the URL's hash and the browser's history in step with it. */
export class Store {
  /** @param {(state: Page.State, before: Page.State) => void} changed Is called after each change. */
  constructor(changed) {
    this.changed = changed;
    this.state = hashToState(location.hash);
    this.timer = 0;
    window.addEventListener("popstate", () => this.read());
    window.addEventListener("hashchange", () => this.read());
  }

  /**
   * @param {Partial<Page.State>} change
   * @param {"push" | "replace"} how
   */
  set(change, how) {
    const before = this.state;
    const next = { ...before, ...change };
    const isChanged = stateToHash(next) !== stateToHash(before);
    if (!isChanged) return;
    if (how === "push") {
      this.write();
      this.state = next;
      writeHash(next, "push");
    } else {
      this.state = next;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.write(), REPLACE_DELAY);
    }
    this.changed(next, before);
  }

  /** Writes a state that replaces another to the URL now. */
  write() {
    clearTimeout(this.timer);
    writeHash(this.state, "replace");
  }

  /** Reads the state from the URL. */
  read() {
    clearTimeout(this.timer);
    const before = this.state;
    this.state = hashToState(location.hash);
    if (stateToHash(this.state) !== stateToHash(before)) this.changed(this.state, before);
  }
}

/**
 * Writes the hash. A page in a frame may not be allowed to; the views work all the same.
 * @param {Page.State} state
 * @param {"push" | "replace"} how
 */
function writeHash(state, how) {
  const whole = stateToHash(state);
  const hash = whole.length <= LONGEST_HASH ? whole : stateToHash({ ...state, options: new Map() });
  if (hash === location.hash.slice(1)) return;
  try {
    const url = hash === "" ? location.pathname + location.search : `#${hash}`;
    if (how === "push") history.pushState(null, "", url);
    else history.replaceState(null, "", url);
  } catch {
    // The state stays in memory only.
  }
}
