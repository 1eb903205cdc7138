// Builds elements. No text of a capture is ever parsed as HTML.

/**
 * Returns a new element. `attributes` are set as they are; `children` are elements and texts.
 * @param {string} tag
 * @param {Record<string, string | number | boolean>} [attributes] `true` sets an empty attribute, `false` none.
 * @param {...(Node | string)} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false) continue;
    made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children);
  return made;
}

/**
 * Returns a new element of SVG.
 * @param {string} tag
 * @param {Record<string, string | number>} [attributes]
 * @param {...(Node | string)} children
 * @returns {SVGElement}
 */
export function svgElement(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/**
 * Returns a button.
 * @param {string} text
 * @param {() => void} act
 * @param {Record<string, string | number | boolean>} [attributes]
 * @returns {HTMLButtonElement}
 */
export function button(text, act, attributes = {}) {
  const made = /** @type {HTMLButtonElement} */ (
    element("button", { type: "button", ...attributes }, text)
  );
  made.addEventListener("click", act);
  return made;
}

/**
 * Returns the value of a variable of the style sheet, such as `--running`.
 * @param {string} name
 * @returns {string}
 */
export function styleVariable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
