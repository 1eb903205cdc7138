// Menus, the help, and the clipboard.

import { button, element } from "./dom.js";

/** The menu that is open, with the element that had the focus. @type {{ root: HTMLElement, before: Element | null } | null} */
let openedMenu = null;

/**
 * Opens a menu at a place in the window. Arrow keys move in it, Escape returns the focus.
 * @param {number} x
 * @param {number} y
 * @param {Page.MenuEntry[]} entries
 */
export function openMenu(x, y, entries) {
  closeMenu();
  const items = entries.map((entry) => {
    const item = button(entry.text, () => {
      closeMenu();
      entry.act();
    }, { role: "menuitem", tabindex: -1 });
    if (entry.key !== undefined) item.append(element("kbd", {}, entry.key));
    return item;
  });
  const root = element("div", { class: "menu", role: "menu" }, ...items);
  const before = document.activeElement;
  openedMenu = { root, before };
  document.body.append(root);
  root.style.left = `${Math.max(0, Math.min(x, window.innerWidth - root.offsetWidth - 8))}px`;
  root.style.top = `${Math.max(0, Math.min(y, window.innerHeight - root.offsetHeight - 8))}px`;
  root.addEventListener("keydown", (event) => {
    const at = items.findIndex((item) => item === document.activeElement);
    const moves = new Map([["ArrowDown", at + 1], ["ArrowUp", at - 1 + items.length], ["Home", 0], ["End", items.length - 1]]);
    const to = moves.get(event.key);
    if (to !== undefined) items[to % items.length].focus();
    else if (event.key === "Escape" || event.key === "Tab") closeMenu();
    else if (event.key !== "Enter" && event.key !== " ") return;
    if (event.key !== "Enter" && event.key !== " ") event.preventDefault();
    event.stopPropagation();
  });
  items[0]?.focus();
}

/** Closes the menu, and returns the focus. */
export function closeMenu() {
  if (openedMenu === null) return;
  const { root, before } = openedMenu;
  openedMenu = null;
  root.remove();
  if (before instanceof HTMLElement) before.focus({ preventScroll: true });
}

/** Closes the menu when the user presses elsewhere. */
export function closeMenuOutside() {
  document.addEventListener("pointerdown", (event) => {
    if (openedMenu !== null && event.target instanceof Node && !openedMenu.root.contains(event.target)) closeMenu();
  });
  window.addEventListener("blur", () => closeMenu());
}

/**
 * Shows the keys in a dialog.
 * @param {[string, [string, string][]][]} groups Titles with keys and what they do.
 */
export function openHelp(groups) {
  const dialog = /** @type {HTMLDialogElement} */ (element("dialog", { class: "help", "aria-label": "Keys" }));
  for (const [title, keys] of groups) {
    const rows = keys.map(([key, text]) => element("tr", {}, element("td", {}, element("kbd", {}, key)), element("td", {}, text)));
    dialog.append(element("h2", {}, title), element("table", { class: "keys" }, element("tbody", {}, ...rows)));
  }
  dialog.append(button("Close", () => dialog.close(), { class: "close" }));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/**
 * Puts a text on the clipboard. Returns whether the browser let it.
 * @param {string} text
 * @returns {Promise<boolean>}
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = /** @type {HTMLTextAreaElement} */ (element("textarea", { class: "offscreen", "aria-hidden": "true" }));
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    return isCopied;
  }
}
