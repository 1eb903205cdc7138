// Kinds of frames: native code, the kernel, and the languages whose runtimes run functions.

/** Numbers of `Page.Functions.kinds`. */
const USER = 1;
const KERNEL = 2;
/** Name of a language that this page does not know, in variables of the style sheet. */
const OTHER = "other";

/**
 * Kinds, in the order of the legend: the name in variables of the style sheet, and the text.
 * Languages have their name in captures.
 * @type {Map<string, string>}
 */
const KINDS = new Map([
  ["java", "Java"], ["node", "JavaScript"], ["php", "PHP"], ["ruby", "Ruby"], ["python", "Python"], ["go", "Go"],
  [OTHER, "other languages"], ["native", "native code"], ["kernel", "kernel"],
]);

/**
 * Returns how people write the name of a language.
 * @param {string} language
 */
export function languageText(language) {
  return KINDS.get(language) ?? language;
}

/**
 * Returns the kind of a function's frames; "" for frames that stand for no code.
 * @param {Page.Functions} functions
 * @param {number} fn
 */
export function kindOf(functions, fn) {
  const language = functions.languages[fn];
  if (language !== "") return KINDS.has(language) ? language : OTHER;
  if (functions.kinds[fn] === USER) return "native";
  return functions.kinds[fn] === KERNEL ? "kernel" : "";
}

/**
 * Returns the kinds of these functions and their texts, in the order of the legend.
 * @param {Page.Functions} functions
 * @returns {[string, string][]}
 */
export function kindsIn(functions) {
  const found = new Set(functions.names.map((_, fn) => kindOf(functions, fn)));
  return [...KINDS].filter(([kind]) => found.has(kind));
}

/** @returns {string} Name of the variable of the style sheet with the colour of a kind. */
export function kindVariable(/** @type {string} */ kind) {
  return `--kind-${kind}`;
}
