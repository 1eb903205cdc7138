// Filters of the selection: chips that users can remove, and the controls that add chips.

import { button, element } from "./dom.js";
import { cutText, formatTime, formatShare, REASON_NAMES, STATE_NAMES } from "./format.js";

/** Threads that have a chip of their own; more have one together. */
const MOST_THREAD_CHIPS = 3;
/** Threads that the list of threads shows at a time. */
const MOST_LISTED = 300;
/** States with a button of their own. */
const SHOWN_STATES = [1, 2, 3];

/**
 * Builds the bar with the controls, the chips and the status line.
 * @param {Page.App} app
 * @returns {{ root: HTMLElement, update: () => void }}
 */
export function makeSelectionBar(app) {
  const states = element("div", { class: "states", role: "group", "aria-label": "States" });
  const threads = makePicker(app, "Threads", () => threadEntries(app), (it) => it.state.threads, (keys) => app.setState({ threads: keys }, "push"));
  const reasons = makePicker(app, "Reasons", () => reasonEntries(app), (it) => it.state.reasons, (names) => app.setState({ reasons: names }, "push"));
  const chips = element("ul", { class: "chips", "aria-label": "Filters" });
  const status = element("p", { class: "status", role: "status" });
  const controls = element("div", { class: "controls" }, states);
  if (app.data.threads.length > 1) controls.append(threads.root);
  if (app.data.waits.count > 0) controls.append(reasons.root);
  const root = element("div", { class: "selection" }, controls, chips, status);
  return {
    root,
    update() {
      updateStates(app, states);
      threads.update();
      reasons.update();
      replaceButtons(chips, makeChips(app));
      status.textContent = statusText(app);
      if (app.selected.shown === 0 && app.selected.idleHidden > 0) {
        status.append(" ", button("Show idle time", () => app.setState({ idle: "show" }, "push")));
      }
    },
  };
}

/**
 * Shows the shown and the hidden time. Together they are the whole.
 * @param {Page.App} app
 * @returns {string}
 */
export function statusText(app) {
  const { shown, whole, hidden, idleHidden } = app.selected;
  if (app.state.view === "summary") return "The summary shows the whole capture, without these filters.";
  const where = app.state.range === null ? "" : " in this time range";
  if (hidden === 0) return `Shown: all ${app.value(whole)}${where}.`;
  const others = hidden - idleHidden;
  const parts = [];
  if (idleHidden > 0) parts.push(`${app.value(idleHidden)} idle`);
  if (others > 0) parts.push(`${app.value(others)} by ${idleHidden > 0 ? "other " : ""}filters`);
  return `Shown: ${app.value(shown)} of ${app.value(whole)}${where} (${formatShare(shown, whole)}). Hidden: ${parts.join(", ")}.`;
}

/**
 * @param {Page.App} app
 * @param {HTMLElement} root
 */
function updateStates(app, root) {
  const { states } = app.state;
  const present = SHOWN_STATES.filter((state) => hasState(app.data, state));
  root.hidden = present.length < 2;
  replaceButtons(
    root,
    present.map((state) => {
      const name = STATE_NAMES[state];
      const isShown = states.length === 0 || states.includes(name);
      const text = isShown ? `${name} ${app.value(app.selected.byState[state])}` : name;
      const toggle = () => {
        const others = present.filter((other) => (other === state ? !isShown : states.length === 0 || states.includes(STATE_NAMES[other])));
        const all = others.length === present.length || others.length === 0;
        app.setState({ states: all ? [] : others.map((other) => STATE_NAMES[other]) }, "push");
      };
      return button(text, toggle, { class: `state state-${name}`, "aria-pressed": String(isShown), title: `Show or hide ${name} time` });
    }),
  );
}

/**
 * Replaces the children of an element. If one of its buttons has the focus, the button in its place
 * gets the focus.
 * @param {HTMLElement} root
 * @param {HTMLElement[]} children
 */
function replaceButtons(root, children) {
  const focused = [...root.querySelectorAll("button")].findIndex((one) => one === document.activeElement);
  root.replaceChildren(...children);
  if (focused < 0) return;
  const buttons = root.querySelectorAll("button");
  const next = buttons[Math.min(focused, buttons.length - 1)] ?? root.parentElement?.querySelector("button");
  next?.focus();
}

/** @type {WeakMap<Page.Data, Set<number>>} */
const PRESENT_STATES = new WeakMap();

/**
 * @param {Page.Data} data
 * @param {number} state
 * @returns {boolean}
 */
function hasState(data, state) {
  let present = PRESENT_STATES.get(data);
  if (present === undefined) {
    present = new Set(data.samples.state.subarray(0, data.samples.measured));
    PRESENT_STATES.set(data, present);
  }
  return present.has(state);
}

/**
 * @param {Page.App} app
 * @returns {HTMLElement[]}
 */
function makeChips(app) {
  const { state, selected, data } = app;
  const chips = [];
  const chip = (/** @type {string} */ whole, /** @type {string} */ remove, /** @type {() => void} */ act) => {
    const text = cutText(whole);
    const close = button("×", act, { class: "remove", "aria-label": `${remove}: ${text}`, title: remove });
    chips.push(element("li", { class: "chip" }, element("span", { class: "name" }, text), close));
  };
  if (state.idle === "hide" && selected.idleHidden > 0) {
    chip(`${app.value(selected.idleHidden)} idle hidden`, "Show idle time", () => app.setState({ idle: "show" }, "push"));
  }
  if (state.idle === "show" && data.samples.idle.includes(1)) {
    const hide = button("Hide idle time", () => app.setState({ idle: "hide" }, "push"), { class: "chip add" });
    chips.push(element("li", {}, hide));
  }
  if (state.threads.length > MOST_THREAD_CHIPS) {
    chip(`${state.threads.length} threads`, "Show all threads", () => app.setState({ threads: [] }, "push"));
  } else {
    for (const key of state.threads) {
      const label = data.threads.find((thread) => thread.key === key)?.label ?? `thread ${key}, which is not in the capture`;
      chip(label, "Remove this thread", () => app.setState({ threads: state.threads.filter((other) => other !== key) }, "push"));
    }
  }
  if (state.states.length > 0) chip(`only ${state.states.join(", ")}`, "Show all states", () => app.setState({ states: [] }, "push"));
  if (state.reasons.length > 0) {
    chip(`blocked: only ${state.reasons.join(", ")}`, "Show all reasons", () => app.setState({ reasons: [] }, "push"));
  }
  if (state.range !== null) {
    const [from, to] = state.range;
    chip(`from ${formatTime(from)} to ${formatTime(to)}`, "Show the whole window", () => app.setState({ range: null }, "push"));
  }
  for (const filter of state.filters) {
    const text = { only: "only stacks with", without: "no stacks with", hide: "frames hidden:" }[filter.kind];
    chip(`${text} ${filter.name}`, "Remove this filter", () => app.setState({ filters: state.filters.filter((other) => other !== filter) }, "push"));
  }
  if (state.pivot !== "") chip(`around ${state.pivot}`, "Show whole stacks", () => app.setState({ pivot: "" }, "push"));
  if (chips.length > 1) {
    const clear = button("Remove all", () => app.setState({ threads: [], states: [], reasons: [], range: null, filters: [], pivot: "" }, "push"), { class: "chip add" });
    chips.push(element("li", {}, clear));
  }
  return chips;
}

/** @typedef {{ key: string, text: string, value: number }} PickerEntry */

/**
 * @param {Page.App} app
 * @returns {PickerEntry[]}
 */
function threadEntries(app) {
  const { data } = app;
  const sums = sumBy(data, data.samples.thread, data.threads.length);
  return data.threads
    .map((thread, number) => ({ key: thread.key, text: thread.label, value: sums[number] }))
    .sort((one, other) => other.value - one.value);
}

/**
 * @param {Page.App} app
 * @returns {PickerEntry[]}
 */
function reasonEntries(app) {
  const sums = sumBy(app.data, app.data.samples.reason, REASON_NAMES.length, 3);
  return REASON_NAMES.map((name, number) => ({ key: name, text: name, value: sums[number] }))
    .filter((entry) => entry.value > 0)
    .sort((one, other) => other.value - one.value);
}

/**
 * Sums the time that is not idle by the numbers in a column.
 * @param {Page.Data} data
 * @param {Int32Array | Uint8Array} by
 * @param {number} count
 * @param {number} [state] Only this state.
 * @returns {Float64Array}
 */
function sumBy(data, by, count, state) {
  const { samples } = data;
  const sums = new Float64Array(count);
  for (let row = 0; row < samples.measured; row++) {
    if (samples.idle[row] === 0 && (state === undefined || samples.state[row] === state)) sums[by[row]] += samples.value[row];
  }
  return sums;
}

/**
 * Builds a button that opens a list with check boxes.
 * @param {Page.App} app
 * @param {string} title
 * @param {() => PickerEntry[]} find Entries, the largest first.
 * @param {(app: Page.App) => string[]} chosen
 * @param {(keys: string[]) => void} choose
 * @returns {{ root: HTMLElement, update: () => void }}
 */
function makePicker(app, title, find, chosen, choose) {
  const field = /** @type {HTMLInputElement} */ (element("input", { type: "search", placeholder: "Filter", "aria-label": `Filter ${title.toLowerCase()}` }));
  const list = element("ul", { class: "entries" });
  const panel = element("div", { class: "panel", role: "dialog", "aria-label": title, hidden: true }, field, list);
  const opener = button(title, () => (panel.hidden ? open() : close()), { "aria-expanded": "false", "aria-haspopup": "dialog" });
  const root = element("div", { class: "picker" }, opener, panel);
  /** @type {PickerEntry[]} */
  let entries = [];
  const open = () => {
    entries = find();
    panel.hidden = false;
    opener.setAttribute("aria-expanded", "true");
    fill();
    field.focus();
  };
  const close = () => {
    panel.hidden = true;
    opener.setAttribute("aria-expanded", "false");
  };
  const fill = () => {
    const wanted = field.value.toLowerCase();
    const matching = entries.filter((entry) => entry.text.toLowerCase().includes(wanted));
    const keys = new Set(chosen(app));
    const rows = matching.slice(0, MOST_LISTED).map((entry) => {
      const box = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox", value: entry.key }));
      box.checked = keys.has(entry.key);
      box.addEventListener("change", () => {
        const now = chosen(app).filter((key) => key !== entry.key);
        choose(box.checked ? [...now, entry.key] : now);
      });
      const value = element("span", { class: "value" }, app.value(entry.value));
      return element("li", {}, element("label", {}, box, element("span", { class: "name" }, cutText(entry.text)), value));
    });
    if (matching.length > MOST_LISTED) rows.push(element("li", {}, `${matching.length - MOST_LISTED} more: type a part of the name`));
    list.replaceChildren(...rows);
  };
  /** Sets the check boxes without a new list, so that the focus stays. */
  const refresh = () => {
    const keys = new Set(chosen(app));
    for (const box of list.querySelectorAll("input")) box.checked = keys.has(box.value);
  };
  field.addEventListener("input", fill);
  root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || panel.hidden) return;
    close();
    opener.focus();
    event.stopPropagation();
  });
  root.addEventListener("focusout", (event) => {
    if (event.relatedTarget instanceof Node && !root.contains(event.relatedTarget)) close();
  });
  document.addEventListener("pointerdown", (event) => {
    if (!panel.hidden && event.target instanceof Node && !root.contains(event.target)) close();
  });
  return {
    root,
    update() {
      const { length } = chosen(app);
      opener.textContent = length === 0 ? title : `${title}: ${length}`;
      if (!panel.hidden) refresh();
    },
  };
}
