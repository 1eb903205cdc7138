// Search for functions, by a part of the name or by `/regex/`.

/**
 * Returns a test for names: the text is a part of the name, without regard to case, or the name
 * matches `/regex/`. A text that is no regular expression matches nothing.
 * @param {string} text
 * @returns {(name: string) => boolean}
 */
export function makeMatcher(text) {
  const inside = patternOf(text);
  if (inside === null) {
    const lower = text.toLowerCase();
    return (name) => name.toLowerCase().includes(lower);
  }
  try {
    const pattern = new RegExp(inside, "i");
    return (name) => pattern.test(name);
  } catch {
    return () => false;
  }
}

/**
 * Returns what is wrong with a regular expression, or "".
 * @param {string} text
 * @returns {string}
 */
export function patternFault(text) {
  const inside = patternOf(text);
  if (inside === null) return "";
  try {
    new RegExp(inside, "i");
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/**
 * @param {string} text
 * @returns {string | null}
 */
function patternOf(text) {
  return text.length > 2 && text.startsWith("/") && text.endsWith("/") ? text.slice(1, -1) : null;
}

/**
 * Returns for each function whether its name matches a search.
 * @param {Page.Functions} functions
 * @param {string} text
 * @returns {Uint8Array}
 */
export function matchFunctions(functions, text) {
  const matches = makeMatcher(text);
  return Uint8Array.from(functions.names, (name) => (matches(name) ? 1 : 0));
}

/**
 * Sums the stacks that have a match, each stack once.
 * @param {Page.Selected} selected
 * @param {Uint8Array} marks Whether the stack of a node of `selected.tree` has a match.
 * @returns {{ all: number, byState: [number, number, number, number] }}
 */
export function sumMatches(selected, marks) {
  const { weight, node, data } = selected;
  /** @type {[number, number, number, number]} */
  const byState = [0, 0, 0, 0];
  for (let row = 0; row < weight.length; row++) {
    if (weight[row] > 0 && marks[node[row]] === 1) byState[data.samples.state[row]] += weight[row];
  }
  return { all: byState[0] + byState[1] + byState[2] + byState[3], byState };
}
