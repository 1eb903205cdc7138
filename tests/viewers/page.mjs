// Opens a page in a browser, uses it as people do, and prints what it shows as one JSON object.
//
//     node page.mjs chromium|firefox PROGRAM PAGE QUESTIONS
//
// PROGRAM is the browser, PAGE a file. QUESTIONS is a JSON object: `hashes` has hashes of URLs by
// name. `kind` is `whole` (views, and their use with a function `name`), `hostile` (views only) or
// `plain` (no views, but a line that has the text `told`; without scripts unless `hasScripts`). The
// answer has `faults`, which is empty if the page does all that this script asks for, and the totals
// of each view for each hash.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const [browserName, program, path, questionsText] = process.argv.slice(2);
const questions = JSON.parse(questionsText);
const address = pathToFileURL(path).href;
const isFirefox = browserName === "firefox";
/** Time in ms for a page to do what is asked for. The machine may be busy. */
const PATIENCE = 120_000;
const SIZE = { width: 1300, height: 900 };

/** @type {string[]} */
const faults = [];
/** @type {Record<string, any>} */
const answer = { faults };

/** Notes a fault unless a condition holds. */
function check(condition, fault) {
  if (!condition) faults.push(fault);
}

function launch() {
  if (!isFirefox) {
    return puppeteer.launch({
      executablePath: program, headless: true, defaultViewport: SIZE, timeout: PATIENCE, protocolTimeout: 2 * PATIENCE,
      args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"],
    });
  }
  return puppeteer.launch({ browser: "firefox", executablePath: program, headless: true, defaultViewport: SIZE, timeout: PATIENCE, protocolTimeout: 2 * PATIENCE });
}

/** Opens the page in a new tab, and notes all that a page must not do. */
async function open(browser, hash, { hasScripts = true } = {}) {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.on("console", (message) => {
    if (["error", "warn", "assert"].includes(message.type())) faults.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`error: ${error}`));
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    dialog.dismiss().catch(() => {});
  });
  page.on("request", (request) => {
    // Firefox has fonts of its own controls in such addresses.
    const isOwn = request.url().replace(/#.*/s, "") === address || request.url().startsWith("data:");
    check(isOwn, `request: ${request.url()}`);
  });
  if (!hasScripts) await page.setJavaScriptEnabled(false);
  await page.evaluateOnNewDocument(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => {
      window.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`);
    });
  });
  await page.goto(address + (hash === "" ? "" : `#${hash}`));
  return page;
}

async function openViews(browser, hash = "") {
  const page = await open(browser, hash);
  await page.waitForFunction(() => document.querySelector("#trouble.fault") !== null || (window.systemscope !== undefined && !document.getElementById("app").hidden));
  const told = await page.evaluate(() => document.querySelector("#trouble.fault")?.textContent ?? "");
  check(told === "", `the page says: ${told}`);
  return page;
}

/** Ends the use of a tab. */
async function close(page) {
  const violations = await page.evaluate(() => window.violations ?? []);
  faults.push(...violations.map((violation) => `policy: ${violation}`));
  await page.close();
}

/** Goes to a hash in the open page, as a link does, and waits until the view has drawn. */
async function goTo(page, hash) {
  await page.evaluate(async (to) => {
    if (location.hash.slice(1) !== to) {
      await new Promise((resolve) => {
        window.addEventListener("hashchange", resolve, { once: true });
        location.hash = to;
      });
    }
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  }, hash);
}

/** Returns what is visible of the views. */
function visibleViews(page) {
  return page.evaluate(() => window.systemscope.views.map(({ id }) => id).filter((id) => {
    const panel = document.getElementById(id === "summary" ? "summary" : `view-${id}`);
    return panel.checkVisibility() && panel.getBoundingClientRect().height > 50;
  }));
}

/** Returns the totals that a view shows, by thread and state where it has them. */
function totals(page) {
  return page.evaluate(() => {
    const app = window.systemscope;
    const { data, selected, state } = app;
    const states = ["unknown", "running", "runnable", "blocked"];
    const { samples, threads } = data;
    const add = (sums, key, value) => {
      if (value !== 0) sums[key] = (sums[key] ?? 0) + value;
    };
    const drawn = (id) => app.views.find((view) => view.id === id)?.drawn();
    const byThread = {};
    selected.weight.forEach((value, row) => add(byThread, `${threads[samples.thread[row]].key} ${states[samples.state[row]]}`, value));
    const { shown, hidden, whole, idleHidden } = selected;
    const found = { shown, hidden, whole, idleHidden, byThread, range: state.range, view: state.view };
    const status = document.querySelector(".status").textContent;
    if (state.view === "flame") {
      const graph = drawn("flame");
      const [{ tree }] = graph.parts;
      const byState = {};
      // Idle time has a colour of its own, and is blocked.
      [0, 1, 2, 3, 4].forEach((number) => add(byState, states[Math.min(number, 3)], tree.total(0, number)));
      const roots = {};
      for (const kid of tree.kids(0)) add(roots, graph.name(graph.parts[0], kid), tree.all(kid));
      const copy = new OffscreenCanvas(graph.canvas.width, 40).getContext("2d", { willReadFrequently: true });
      copy.drawImage(graph.canvas, 0, 0);
      const pixels = copy.getImageData(0, 0, graph.canvas.width, 40).data;
      return { ...found, status, byState, all: tree.all(0), roots, colours: new Set(new Uint32Array(pixels.buffer)).size };
    }
    if (state.view === "table") {
      const { self, total } = drawn("table");
      const byState = {};
      const functions = {};
      for (let at = 0; at < self.length; at++) {
        add(byState, states[at % 4], self[at]);
        add(functions, data.functions.names[Math.floor(at / 4)] ?? "[no stack]", total[at]);
      }
      return { ...found, status, byState, functions, rows: document.querySelectorAll("#view-table tbody tr").length };
    }
    if (state.view === "wakers") return { ...found, status, blocked: drawn("wakers").reduce((sum, { value }) => sum + value, 0) };
    if (state.view === "timeline") {
      const { before } = drawn("timeline");
      const { first } = data.times.intervals;
      const lanes = {};
      threads.forEach((thread, number) => ["running", "runnable", "blocked", "hidden"].forEach((kind, place) => {
        add(lanes, `${thread.key} ${kind}`, before[place][first[number + 1]] - before[place][first[number]]);
      }));
      return { ...found, status, lanes };
    }
    return { ...found, status };
  });
}

/** Asks for the totals of each view for each hash. */
async function askTotals(page) {
  const views = await page.evaluate(() => window.systemscope.views.map(({ id }) => id));
  answer.views = views;
  answer.totals = {};
  for (const [name, hash] of Object.entries(questions.hashes ?? {})) {
    answer.totals[name] = {};
    for (const view of views.filter((id) => id !== "summary")) {
      await goTo(page, `view=${view}${hash === "" ? "" : `&${hash}`}`);
      const visible = await visibleViews(page);
      check(visible.join() === view, `${name}: the views ${visible} are visible in place of ${view}`);
      const its = await totals(page);
      check(its.view === view, `${name}: the state has the view ${its.view} in place of ${view}`);
      check(its.shown + its.hidden === its.whole, `${name}: ${its.shown} + ${its.hidden} is not ${its.whole}`);
      check(its.colours === undefined || its.shown === 0 || its.colours > 1, `${name}: the flame graph is empty`);
      answer.totals[name][view] = its;
    }
  }
  await goTo(page, "");
  check((await visibleViews(page)).join() === "summary", "the summary is not visible");
}

/** Brushes a part of the timeline with the mouse. */
async function brush(page) {
  await goTo(page, "view=timeline&idle=show");
  const box = await page.evaluate(() => {
    const { x, y, width, height } = document.querySelector(".minimap").getBoundingClientRect();
    return { x, y, width, height };
  });
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * 0.25, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, y, { steps: 4 });
  await page.mouse.move(box.x + box.width * 0.75, y, { steps: 4 });
  await page.mouse.up();
  answer.brushed = await totals(page);
  check(answer.brushed.range !== null, "the brush made no time range");
  // The range filters the other views.
  await page.evaluate(() => document.getElementById("tab-flame").click());
  const flame = await totals(page);
  check(JSON.stringify(flame.range) === JSON.stringify(answer.brushed.range) && flame.all === answer.brushed.shown, "the time range does not filter the flame graph");
}

/** Searches for a function by the keyboard. */
async function search(page, name) {
  const found = async (hash, text) => {
    await goTo(page, hash);
    await page.keyboard.press("/");
    await page.keyboard.type(text);
    await page.waitForFunction((wanted) => window.systemscope.state.search === wanted, {}, text);
    const said = await page.evaluate(() => document.querySelector(".search-result").textContent);
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => window.systemscope.state.search === "");
    await page.evaluate(() => document.activeElement.blur());
    return said;
  };
  const part = `pivot=${encodeURIComponent(name)}`;
  await goTo(page, `view=flame&${part}`);
  const told = await page.evaluate(() => window.systemscope.value(window.systemscope.selected.shown));
  for (const view of ["flame", "table", "timeline"]) {
    const said = await found(`view=${view}`, `/^${name}$/`);
    check(said.startsWith(`${told}, `), `${view}: the search for ${name} says ${said}, and ${told} are below it`);
  }
}

/** Removes the chip that hides idle time, and adds it again. */
async function useChips(page) {
  await goTo(page, "view=flame");
  const chip = async (selector) => {
    const isThere = await page.evaluate((it) => {
      const one = document.querySelector(it);
      one?.click();
      return one !== null;
    }, selector);
    check(isThere, `no ${selector}`);
  };
  const hidden = (await totals(page)).idleHidden;
  if (hidden === 0) return;
  await chip(".chips .remove[aria-label^='Show idle time']");
  check((await totals(page)).hidden === 0, "time is hidden although the chip was removed");
  await chip(".chips .add");
  check((await totals(page)).idleHidden === hidden, "the chip does not hide what it hid");
}

/** Zooms in the flame graph by the keyboard alone, from the top of the page. */
async function useKeys(page) {
  const press = (key) => page.keyboard.press(key);
  const zoom = () => page.evaluate(() => {
    const graph = window.systemscope.views.find(({ id }) => id === "flame").drawn();
    const [part] = graph.parts;
    const row = graph.rows.find((one) => one.part === part && one.node[0] === part.zoom);
    return { zoom: part.zoom, all: part.tree.all(part.zoom), whole: part.tree.all(0), isWide: row !== undefined && row.right[0] - row.left[0] === graph.width };
  });
  await press("Tab");
  check(await page.evaluate(() => document.activeElement.getAttribute("role") === "tab"), "the first Tab does not lead to the views");
  await press("ArrowRight");
  check((await visibleViews(page)).join() === "flame", "the arrow key does not lead to the flame graph");
  let isOnGraph = false;
  for (let times = 0; times < 40 && !isOnGraph; times++) {
    await press("Tab");
    isOnGraph = await page.evaluate(() => document.activeElement === document.querySelector("#view-flame canvas"));
  }
  check(isOnGraph, "Tab does not lead to the flame graph");
  await press("ArrowDown");
  await press("ArrowDown");
  await press("Enter");
  const near = await zoom();
  check(near.zoom > 0 && near.all <= near.whole && near.isWide, `Enter does not zoom: ${JSON.stringify(near)}`);
  await page.waitForFunction(() => location.hash.includes("flame.zoom"));
  // A reload shows the same.
  const link = page.url();
  await page.reload();
  await page.waitForFunction(() => window.systemscope !== undefined && window.systemscope.views[1].drawn()?.rows.length > 0);
  check(page.url() === link, "a reload changes the address");
  check(JSON.stringify(await zoom()) === JSON.stringify(near), "a reload loses the zoom");
  await press("0");
  check((await zoom()).zoom === 0, "0 does not zoom out");
  for (const [key, view] of [["3", "table"], ["2", "flame"]]) {
    await press(key);
    check((await visibleViews(page)).join() === view, `the key ${key} does not show the view ${view}`);
  }
  await press("?");
  check(await page.evaluate(() => document.querySelector("dialog[open]") !== null), "? shows no help");
  await press("Escape");
  check(await page.evaluate(() => document.querySelector("dialog[open]") === null), "Escape does not close the help");
}

/** Adds two filters, and goes back and forward in the history. */
async function useHistory(page) {
  await goTo(page, "view=flame&idle=show");
  const shown = () => page.evaluate(() => window.systemscope.selected.shown);
  const first = await shown();
  await page.evaluate(() => document.querySelector(".states .state-blocked").click());
  const second = await shown();
  check(second < first, "the button of a state hides nothing");
  for (const [step, value] of [["back", first], ["forward", second]]) {
    await page.evaluate((it) => new Promise((resolve) => {
      window.addEventListener("hashchange", resolve, { once: true });
      history[it]();
    }), step);
    check(await shown() === value, `${step} in the history does not show what was shown`);
  }
}

/** Asks axe-core about each view, with light and dark colours. */
async function askAxe(page) {
  const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  await page.evaluate(source);
  for (const scheme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    for (const view of answer.views) {
      await goTo(page, view === "summary" ? "" : `view=${view}`);
      const { violations, passes } = await page.evaluate(() => window.axe.run({ resultTypes: ["violations"] }));
      check(passes.length > 10, `axe: ${view}: only ${passes.length} rules had something to check`);
      for (const { id, impact, nodes } of violations.filter((it) => ["serious", "critical"].includes(it.impact))) {
        faults.push(`axe: ${view}, ${scheme}: ${impact} ${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" and ")}`);
      }
    }
  }
}

/** Returns the texts of a page without its views. */
function texts(page) {
  return page.evaluate(() => {
    const trouble = document.getElementById("trouble");
    return {
      screen: document.getElementById("summary").innerText, isAppHidden: document.getElementById("app")?.hidden ?? true,
      trouble: trouble?.checkVisibility() ? trouble.innerText : "",
    };
  });
}

const browser = await launch();
try {
  if (questions.kind === "plain") {
    const page = await open(browser, "", { hasScripts: questions.hasScripts });
    await page.waitForFunction((told) => document.getElementById("trouble").innerText.includes(told), {}, questions.told)
      .catch(() => {});
    Object.assign(answer, await texts(page));
    await close(page);
  } else {
    const page = await openViews(browser);
    Object.assign(answer, await texts(page));
    await askTotals(page);
    if (questions.kind === "whole") {
      await useChips(page);
      await search(page, questions.name);
      await brush(page);
      await useHistory(page);
    }
    await close(page);
    if (questions.kind === "whole") {
      // The first Tab of a new page starts at its top.
      const other = await openViews(browser);
      await useKeys(other);
      await close(other);
    }
    if (!isFirefox) {
      // axe-core makes elements of its own, which the policy for the page would forbid.
      const other = await openViews(browser);
      await askAxe(other);
      await other.close();
    }
  }
} catch (error) {
  faults.push(`stopped: ${error.stack}`);
} finally {
  await browser.close();
}
console.log(JSON.stringify(answer));
