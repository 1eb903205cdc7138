// Opens the capture in the page, and connects the state with the views.

import { makeSelectionBar } from "./chips.js";
import { makeCompareView } from "./compare.js";
import { decodeCapture, readBlock } from "./data.js";
import { button, element } from "./dom.js";
import { makeFlameView } from "./flame.js";
import { formatCount, formatShare, formatTime, STATE_NAMES } from "./format.js";
import { makeLanesView } from "./lanes.js";
import { closeMenuOutside, copyText, openHelp, openMenu } from "./menu.js";
import { CaptureError } from "./proto.js";
import { matchFunctions, patternFault, sumMatches } from "./search.js";
import { initialState, select } from "./selection.js";
import { Store } from "./state.js";
import { makeSummaryView } from "./summary.js";
import { makeTableView } from "./table.js";
import { markStacks } from "./tree.js";
import { makeWakersView } from "./wakers.js";

/** Time in ms without a key until a search starts. */
const SEARCH_DELAY = 120;
/** Parts of the state that decide what is selected. */
const SELECTING = /** @type {const} */ (["threads", "states", "reasons", "idle", "range", "filters", "pivot"]);
const INITIAL = initialState();
/** @type {[string, string][]} */
const COMMON_KEYS = [
  ["1 … 6", "go to a view"],
  ["/", "search by a part of a name, or by /regex/"],
  ["n  N", "go to the next or the previous match"],
  ["Esc", "close what is open, or clear the search"],
  ["?", "show the keys"],
];

/**
 * Writes into the page why its views are missing. The first screen stays.
 * @param {unknown} error
 */
function reportTrouble(error) {
  const line = document.getElementById("trouble");
  const summary = document.getElementById("summary");
  const root = document.getElementById("app");
  if (summary !== null) summary.hidden = false;
  if (root !== null && !(root.firstChild instanceof Node)) root.hidden = true;
  if (line === null) return;
  const message = error instanceof Error ? error.message : String(error);
  line.textContent = error instanceof CaptureError
    ? `The views are not available: ${message}.`
    : `The views have a fault, so only the first screen is certain: ${message}`;
  line.classList.add("fault");
  line.hidden = false;
}

/** Opens the page. */
async function openPage() {
  const root = document.getElementById("app");
  const summary = document.getElementById("summary");
  if (root === null || summary === null) throw new CaptureError("the page was edited: a part of it is missing");
  const records = await readBlock("capture");
  if (records === null) throw new CaptureError("the page has no capture");
  const data = decodeCapture(records);
  const earlier = await readBlock("before");
  const before = earlier === null ? null : decodeCapture(earlier);
  const page = new ScopePage(root, summary, data, before);
  // Tests and people with a console read the page here.
  Object.assign(window, { systemscope: page });
  page.start();
}

/** The page: state, selection and views. @implements {Page.App} */
class ScopePage {
  /**
   * @param {HTMLElement} root
   * @param {HTMLElement} summary
   * @param {Page.Data} data
   * @param {Page.Data | null} before
   */
  constructor(root, summary, data, before) {
    this.root = root;
    this.summary = summary;
    this.data = data;
    this.before = before;
    this.store = new Store((state, old) => this.changed(state, old));
    /** @type {Page.Selected} */
    this.selected = select(data, this.store.state);
    /** @type {Page.Selected | null} */
    this.selectedBefore = null;
    this.selectBefore();
    /** @type {Page.Colouring | null} */
    this.colouring = null;
    /** @type {Page.View[]} */
    this.views = [makeSummaryView(), makeFlameView(), makeTableView(), makeLanesView(), makeWakersView(), makeCompareView()]
      .filter((view) => view.isAvailable(this));
    this.bar = makeSelectionBar(this);
    this.tabs = element("div", { role: "tablist", "aria-label": "Views", class: "tabs" });
    this.panels = element("div", { role: "main", class: "panels" });
    /** @type {Set<string>} */
    this.mounted = new Set();
    this.said = element("p", { class: "offscreen", "aria-live": "polite" });
    this.searchField = /** @type {HTMLInputElement} */ (
      element("input", { type: "search", class: "search", placeholder: "Search functions ( / )", "aria-label": "Search functions", spellcheck: "false" })
    );
    this.searchResult = element("span", { class: "search-result", role: "status" });
    this.searchTimer = 0;
    /** Search whose result is shown. */
    this.searched = "";
    /** ID of the view that is shown. */
    this.shownView = "";
    /** Whether the selection is newer than what the bar shows of it. */
    this.isNew = true;
    this.step = element("span", { class: "step", hidden: true });
  }

  get state() {
    return this.store.state;
  }

  /** Builds the page, and shows the view that the URL names. */
  start() {
    this.views.forEach((view, number) => {
      const tab = button(view.title, () => this.setState({ view: view.id }, "push"), {
        role: "tab", id: `tab-${view.id}`, title: `Key ${number + 1}`,
      });
      tab.addEventListener("keydown", (event) => this.moveTab(event, number));
      this.tabs.append(tab);
      if (view.id === "summary") {
        tab.setAttribute("aria-controls", "summary");
        return;
      }
      tab.setAttribute("aria-controls", `view-${view.id}`);
      this.panels.append(element("section", { id: `view-${view.id}`, role: "tabpanel", "aria-labelledby": `tab-${view.id}`, class: `view view-${view.id}`, hidden: true },
        element("h1", { class: "offscreen" }, view.title)));
    });
    this.step.append(
      button("‹", () => this.stepMatch(-1), { "aria-label": "Previous match", title: "Previous match (N)" }),
      element("span", { class: "place" }),
      button("›", () => this.stepMatch(1), { "aria-label": "Next match", title: "Next match (n)" }),
    );
    const help = button("?", () => this.help(), { "aria-label": "Keys", title: "Keys (?)", class: "help-button" });
    const search = element("div", { class: "searching", role: "search" }, this.searchField, this.step, this.searchResult);
    const header = element("header", { class: "bar" }, element("div", { class: "top" }, this.tabs, search, help), this.bar.root);
    this.root.append(header, this.panels, this.said);
    this.summary.before(this.root);
    this.root.hidden = false;
    // Until now the line says that the page is not loaded.
    document.getElementById("trouble")?.setAttribute("hidden", "");
    this.searchField.addEventListener("input", () => {
      clearTimeout(this.searchTimer);
      this.searchTimer = setTimeout(() => this.search(this.searchField.value), SEARCH_DELAY);
    });
    this.searchField.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        this.search(this.searchField.value);
        if (this.view().id === "summary" && this.views.length > 1) this.setState({ view: this.views[1].id }, "push");
        this.stepMatch(event.shiftKey ? -1 : 1);
      } else if (event.key === "Escape") {
        this.search("");
        this.searchField.blur();
      }
    });
    document.addEventListener("keydown", (event) => this.key(event));
    closeMenuOutside();
    for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
      window.matchMedia(query).addEventListener("change", () => this.show());
    }
    this.show();
  }

  selectBefore() {
    const { state } = this.store;
    this.selectedBefore = this.before === null ? null : select(this.before, { ...state, threads: [], range: null });
  }

  /**
   * @param {Page.State} state
   * @param {Page.State} old
   */
  changed(state, old) {
    if (SELECTING.some((part) => state[part] !== old[part])) {
      this.selected = select(this.data, state);
      this.selectBefore();
      this.isNew = true;
    }
    this.show();
  }

  /** Shows the state. */
  show() {
    const { state } = this.store;
    const current = this.view();
    for (const view of this.views) {
      const isCurrent = view === current;
      const tab = document.getElementById(`tab-${view.id}`);
      tab?.setAttribute("aria-selected", String(isCurrent));
      tab?.setAttribute("tabindex", isCurrent ? "0" : "-1");
      this.panelOf(view).hidden = !isCurrent;
    }
    this.panels.hidden = current.id === "summary";
    document.body.dataset.view = current.id;
    document.body.dataset.filtered = String(SELECTING.some((part) => String(state[part] ?? "") !== String(INITIAL[part] ?? "")));
    if (this.isNew || this.shownView !== current.id) this.bar.update();
    this.shownView = current.id;
    if (document.activeElement !== this.searchField) this.searchField.value = state.search;
    if (this.isNew || this.searched !== state.search) this.showMatches();
    this.isNew = false;
    if (!this.mounted.has(current.id)) {
      this.mounted.add(current.id);
      current.mount(this.panelOf(current), this);
    }
    for (const view of this.views) view.prepare?.(this);
    current.update(this);
    this.showStep();
  }

  /** @returns {Page.View} */
  view() {
    return this.views.find((view) => view.id === this.store.state.view) ?? this.views[0];
  }

  /**
   * @param {Page.View} view
   * @returns {HTMLElement}
   */
  panelOf(view) {
    return view.id === "summary" ? this.summary : /** @type {HTMLElement} */ (document.getElementById(`view-${view.id}`));
  }

  /** Shows which share of the time the search matches, by state. */
  showMatches() {
    const { search } = this.store.state;
    const { selected } = this;
    this.searched = search;
    if (search === "") {
      this.searchResult.textContent = "";
      return;
    }
    const fault = patternFault(search);
    if (fault !== "") {
      this.searchResult.textContent = `This is no regular expression: ${fault}`;
      return;
    }
    const marks = markStacks(selected.tree, matchFunctions(this.data.functions, search));
    const { all, byState } = sumMatches(selected, marks);
    const parts = byState.flatMap((value, state) => (value > 0 ? [`${STATE_NAMES[state]} ${formatShare(value, selected.shown)}`] : []));
    const states = parts.length > 1 ? ` (${parts.join(", ")})` : "";
    this.searchResult.textContent = `${this.value(all)}, ${formatShare(all, selected.shown)} of what is shown${states}`;
  }

  /** Shows the number of the match at which the view is. */
  showStep() {
    const place = this.view().matchPlace?.(this) ?? "";
    this.step.hidden = place === "";
    this.step.children[1].textContent = place;
  }

  /** @param {number} direction */
  stepMatch(direction) {
    this.view().stepMatch?.(direction, this);
    this.showStep();
  }

  /** @param {string} text */
  search(text) {
    clearTimeout(this.searchTimer);
    this.searchField.value = text;
    this.setState({ search: text }, "replace");
  }

  /**
   * @param {KeyboardEvent} event
   * @param {number} number
   */
  moveTab(event, number) {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const to = this.views[(number + step + this.views.length) % this.views.length];
    this.setState({ view: to.id }, "push");
    document.getElementById(`tab-${to.id}`)?.focus();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { target } = event;
    const isField = target instanceof HTMLInputElement || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement;
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (isField || document.querySelector("dialog[open]") !== null) return;
    if (this.view().key?.(event, this) === true) {
      event.preventDefault();
      return;
    }
    const number = Number(event.key);
    if (number >= 1 && number <= this.views.length) this.setState({ view: this.views[number - 1].id }, "push");
    else if (event.key === "/") this.searchField.focus();
    else if (event.key === "n") this.stepMatch(1);
    else if (event.key === "N") this.stepMatch(-1);
    else if (event.key === "?") this.help();
    else if (event.key === "Escape") this.search("");
    else return;
    event.preventDefault();
  }

  help() {
    const view = this.view();
    openHelp([["All views", COMMON_KEYS], ...(view.keys === undefined ? [] : [/** @type {[string, [string, string][]]} */ ([view.title, view.keys])])]);
  }

  /**
   * @param {Partial<Page.State>} change
   * @param {"push" | "replace"} how
   */
  setState(change, how) {
    this.store.set(change, how);
  }

  /** @param {string} name */
  option(name) {
    return this.store.state.options.get(name) ?? "";
  }

  /**
   * @param {string} name
   * @param {string} value
   * @param {"push" | "replace"} how
   */
  setOption(name, value, how = "replace") {
    const options = new Map(this.store.state.options);
    if (value === "") options.delete(name);
    else options.set(name, value);
    this.setState({ options }, how);
  }

  /** @param {Page.Filter} filter */
  addFilter(filter) {
    const { filters } = this.store.state;
    if (filters.some((other) => other.kind === filter.kind && other.name === filter.name)) return;
    this.setState({ filters: [...filters, filter] }, "push");
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {Page.MenuEntry[]} entries
   */
  menu(x, y, entries) {
    openMenu(x, y, entries);
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {number} fn
   * @param {string} stack
   * @param {Page.MenuEntry[]} first
   */
  functionMenu(x, y, fn, stack, first = []) {
    const name = this.data.functions.names[fn];
    const view = this.views.some((it) => it.id === "flame") ? "flame" : this.store.state.view;
    openMenu(x, y, [
      ...first,
      { text: "Show its callers and callees", key: "p", act: () => this.setState({ pivot: name, view }, "push") },
      { text: "Show only stacks with it", key: "o", act: () => this.addFilter({ kind: "only", name }) },
      { text: "Hide stacks with it", key: "x", act: () => this.addFilter({ kind: "without", name }) },
      { text: "Hide its frames", key: "h", act: () => this.addFilter({ kind: "hide", name }) },
      { text: "Search for it", act: () => this.search(name) },
      { text: "Copy the name", key: "c", act: () => this.copy(name) },
      ...(stack === "" ? [] : [{ text: "Copy the stack as folded text", key: "C", act: () => this.copy(stack) }]),
    ]);
  }

  /** @param {string} text */
  async copy(text) {
    const isCopied = await copyText(text);
    this.say(isCopied ? "Copied." : "The browser does not let this page copy.");
  }

  /** @param {string} text */
  say(text) {
    this.said.textContent = text;
  }

  /**
   * @param {number} value
   * @returns {string}
   */
  value(value) {
    if (this.data.unit === "ns") return formatTime(value);
    return `${formatCount(value)} ${this.data.eventName}`;
  }
}

window.addEventListener("error", (event) => {
  // Browsers report a resize that is handled in the next frame as an error.
  if (!event.message.startsWith("ResizeObserver")) reportTrouble(event.error ?? event.message);
});
window.addEventListener("unhandledrejection", (event) => reportTrouble(event.reason));
openPage().catch(reportTrouble);
