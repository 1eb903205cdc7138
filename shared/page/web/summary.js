// The first screen is written by Rust. Here its threads, causes and idle time become links into the
// views.
import { button, element } from "./dom.js";

/**
 * Puts the contents of a cell into a link.
 * @param {Element | null} cell
 * @param {string} title
 * @param {() => void} act
 */
function makeLink(cell, title, act) {
  if (!(cell instanceof HTMLElement)) return;
  const link = button("", act, { class: "thread-link", title });
  link.append(...cell.childNodes);
  cell.append(link);
}

/**
 * Returns the view of the first screen.
 * @returns {Page.View}
 */
export function makeSummaryView() {
  return {
    id: "summary",
    title: "Summary",
    isAvailable: () => true,
    mount(root, app) {
      // Two captures may have threads of the same IDs. The links lead to threads of the later capture.
      for (const row of root.querySelectorAll("tr[data-tid]")) {
        const { pid, tid } = /** @type {HTMLElement} */ (row).dataset;
        const thread = app.data.threads.find((one) => String(one.pid) === pid && String(one.tid) === tid);
        if (!thread) continue;
        makeLink(row.querySelector("th"), "Show the stacks of this thread", () => {
          app.setState({ view: "flame", threads: [thread.key], states: [], reasons: [], pivot: "" }, "push");
        });
      }
      for (const row of root.querySelectorAll("tr[data-state]")) {
        const { state = "", reason = "" } = /** @type {HTMLElement} */ (row).dataset;
        makeLink(row.querySelector("th"), "Show the stacks of this state", () => {
          app.setState({ view: "flame", threads: [], states: [state], reasons: reason === "" ? [] : [reason], pivot: "" }, "push");
        });
      }
      const idle = root.querySelector("#idle");
      idle?.append(element("span", { class: "more-link" }, " · ", button("show it in the flame graph", () => app.setState({ view: "flame", idle: "show" }, "push"), { class: "thread-link" })));
    },
    update() {},
  };
}
