// The first screen is written by Rust. Here its threads become links to their stacks.
import { button } from "./dom.js";

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
      for (const row of root.querySelectorAll("[data-tid]")) {
        if (!(row instanceof HTMLElement || row instanceof SVGElement)) continue;
        const { pid, tid } = row.dataset;
        const thread = app.data.threads.find((one) => String(one.pid) === pid && String(one.tid) === tid);
        const cell = row.querySelector("th, td") ?? row;
        if (!thread || !(cell instanceof HTMLElement)) continue;
        const link = button("", () => app.setState({ view: "flame", threads: [thread.key] }, "push"), {
          class: "thread-link", title: "Show the stacks of this thread",
        });
        link.append(...cell.childNodes);
        cell.append(link);
      }
    },
    update() {},
  };
}
