/**
 * Returns the state of a page that was just opened.
 * @returns {Page.State}
 */
export function initialState() {
  return {
    view: "summary", threads: [], states: [], reasons: [], idle: "hide", range: null,
    filters: [], pivot: "", search: "", options: new Map(),
  };
}

/**
 * Computes what a state shows of a capture.
 * @param {Page.Data} data
 * @param {Page.State} state
 * @returns {Page.Selected}
 */
export function select(data, state) {
  throw new Error(`not written yet: ${data.samples.count} ${state.view}`);
}
