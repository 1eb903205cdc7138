// The view of wakers: a tree of threads, waits, wakers and stacks, and the heaviest pairs of waker
// and woken thread as a graph.
import { element, svgElement, button } from "./dom.js";
import { formatCount, formatShare } from "./format.js";
import { waitText, wakerText, stackNames } from "./data.js";
import { stackElement } from "./table.js";

/** Maximum rows that a node of the tree shows at first, and then at each "more". */
const FACET_ROWS = 50;
/** Maximum edges of the graph and of its table. */
const MOST_EDGES = 30;
/** The graph leaves out edges below this share of the time of all edges. The table has them. */
const LEAST_EDGE_SHARE = 0.005;
const GRAPH_BOX = { width: 170, height: 34, across: 100, down: 16 };
/** Height of an edge between the boxes of a layer. */
const GRAPH_LANE = 14;

/**
 * Row of the tree. `children` are made when the row is opened first.
 * @typedef {{ text: string, value: number, count: number, samples: number[], level: number, key: string }} Facet
 */

/**
 * Pair of threads: `waker` ended waits of `sleeper`. Both are numbers of `WakerGraph.names`.
 * @typedef {{ waker: number, sleeper: number, value: number, count: number }} WakerEdge
 * @typedef {{ names: string[], edges: WakerEdge[] }} WakerGraph
 */

/**
 * Returns whether a sample is of a wait. In profiles that do not tell states apart, all time off
 * the CPU counts as blocked.
 * @param {Page.Data} data
 * @param {number} sample
 * @returns {boolean}
 */
function isWait(data, sample) {
  const state = data.samples.state[sample];
  return state === 3 || (state === 0 && data.meta.lengths !== null);
}

/**
 * Returns the blocked samples that the selection shows.
 * @param {Page.Selected} selected
 * @returns {number[]}
 */
export function blockedSamples(selected) {
  const { weight, data } = selected;
  const found = [];
  for (let sample = 0; sample < weight.length; sample++) {
    if (weight[sample] > 0 && isWait(data, sample)) found.push(sample);
  }
  return found;
}

/**
 * Returns the first waker of a sample as a row of `data.wakers`, or -1.
 * @param {Page.Data} data
 * @param {number} sample
 * @returns {number}
 */
function firstWaker(data, sample) {
  const chain = data.samples.chain[sample];
  if (chain < 0) return -1;
  const row = data.wakers.first[chain];
  return row < data.wakers.first[chain + 1] ? row : -1;
}

/**
 * Returns the name of a waker without its stack.
 * @param {Page.Data} data
 * @param {number} row
 * @returns {string}
 */
function wakerName(data, row) {
  const { thread, name, tid, isThread } = data.wakers;
  if (thread[row] >= 0) return data.threads[thread[row]].label;
  const text = data.names[name[row]];
  return isThread[row] === 1 && tid[row] > 0 ? `${text} ${tid[row]}` : text;
}

/**
 * Returns the name of a thread, or the name that it shares with threads of its process.
 * @param {Page.Data} data
 * @param {number} thread
 * @param {boolean} byName
 * @returns {string}
 */
function sleeperName(data, thread, byName) {
  const { name, label, pid } = data.threads[thread];
  return byName ? `${name} ${pid}` : label;
}

/**
 * Returns the text of a sample on a level of the tree: thread, wait, waker, stack.
 * @param {Page.Data} data
 * @param {number} sample
 * @param {number} level
 * @returns {string}
 */
export function facetText(data, sample, level) {
  const { samples, waits } = data;
  const wait = samples.wait[sample];
  if (level === 0) return sleeperName(data, samples.thread[sample], false);
  if (level === 1) return wait < 0 ? "unknown" : waitText(data, wait);
  if (level === 2) {
    const row = firstWaker(data, sample);
    if (row >= 0) return `woken by ${wakerText(data, row)}`;
    if (wait >= 0 && waits.endedBy[wait] >= 0) return `ended by ${data.names[waits.endedBy[wait]]}`;
    return "waker unknown";
  }
  const names = stackNames(data, samples.node[sample]).reverse();
  return names.length === 0 ? "[no stack]" : names.slice(0, 5).join(" ← ") + (names.length > 5 ? " ← …" : "");
}

/**
 * Divides samples by their text on a level, heaviest first.
 * @param {Page.Selected} selected
 * @param {number[]} samples
 * @param {number} level
 * @param {string} above Key of the row above.
 * @param {boolean} byName Whether threads of one name and process are one.
 * @returns {Facet[]}
 */
export function divideFacet(selected, samples, level, above, byName) {
  const { data, weight, count } = selected;
  /** @type {Map<string | number, Facet>} */
  const found = new Map();
  // Many samples share a wait and a chain, whose texts take time to make.
  /** @type {Map<number, string>} */
  const texts = new Map();
  /** @param {number} sample */
  const textOf = (sample) => {
    const { wait, chain, thread } = data.samples;
    const key = level === 0 ? thread[sample] : level === 1 ? wait[sample] : wait[sample] * 2 ** 26 + chain[sample];
    let text = texts.get(key);
    if (text === undefined) {
      text = level === 0 ? sleeperName(data, thread[sample], byName) : facetText(data, sample, level);
      texts.set(key, text);
    }
    return text;
  };
  for (const sample of samples) {
    const id = level === 3 ? data.samples.node[sample] : textOf(sample);
    let facet = found.get(id);
    if (!facet) {
      const text = level === 3 ? facetText(data, sample, level) : textOf(sample);
      facet = { text, value: 0, count: 0, samples: [], level, key: `${above}/${level === 3 ? id : text}` };
      found.set(id, facet);
    }
    facet.value += weight[sample];
    facet.count += count[sample];
    facet.samples.push(sample);
  }
  return [...found.values()].sort((one, other) => other.value - one.value || (one.text < other.text ? -1 : 1));
}

/**
 * Adds up waits by waker and sleeper. Threads of one name and process are one if `byName`.
 * @param {Page.Selected} selected
 * @param {boolean} byName
 * @returns {WakerGraph} All edges, the heaviest first.
 */
export function wakerGraph(selected, byName) {
  const { data, weight, count } = selected;
  /** @type {string[]} */
  const names = [];
  /** @type {Map<string, number>} */
  const numbers = new Map();
  /** @param {string} name */
  const number = (name) => {
    let found = numbers.get(name);
    if (found === undefined) {
      found = names.length;
      names.push(name);
      numbers.set(name, found);
    }
    return found;
  };
  /** @type {Map<number, WakerEdge>} */
  const edges = new Map();
  for (const sample of blockedSamples(selected)) {
    const row = firstWaker(data, sample);
    const wait = data.samples.wait[sample];
    const endedBy = wait < 0 ? -1 : data.waits.endedBy[wait];
    if (row < 0 && endedBy < 0) continue;
    const waker = number(row < 0 ? data.names[endedBy]
      : data.wakers.thread[row] >= 0 ? sleeperName(data, data.wakers.thread[row], byName) : wakerName(data, row));
    const sleeper = number(sleeperName(data, data.samples.thread[sample], byName));
    const key = waker * 2 ** 24 + sleeper;
    const edge = edges.get(key);
    if (edge) {
      edge.value += weight[sample];
      edge.count += count[sample];
    } else {
      edges.set(key, { waker, sleeper, value: weight[sample], count: count[sample] });
    }
  }
  const sorted = [...edges.values()].sort((one, other) => other.value - one.value
    || (names[one.waker] < names[other.waker] ? -1 : names[one.waker] > names[other.waker] ? 1 : 0)
    || (names[one.sleeper] < names[other.sleeper] ? -1 : 1));
  return { names, edges: sorted };
}

/**
 * Places the nodes of edges in layers. A waker stands left of the threads that it wakes. The
 * lightest edge of a circle leads back instead. Equal input gives an equal picture.
 * @param {WakerEdge[]} edges
 * @returns {{ layers: number[][], isBack: boolean[], lanes: number[][] }} Nodes by layer, which
 *   edges lead back, and the places of each edge in the layers that it crosses. Such a place is a
 *   negative number in `layers`.
 */
export function layoutLayers(edges) {
  /** @type {Map<number, number[]>} */
  const next = new Map();
  /** @type {Map<number, number>} */
  const weights = new Map();
  for (const { waker, sleeper, value } of edges) {
    for (const node of [waker, sleeper]) {
      if (!next.has(node)) next.set(node, []);
      weights.set(node, (weights.get(node) ?? 0) + value);
    }
  }
  /** @param {number} from @param {number} to */
  const leads = (from, to) => {
    const seen = new Set([from]);
    const open = [from];
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      if (node === to) return true;
      for (const other of next.get(node) ?? []) {
        if (seen.has(other)) continue;
        seen.add(other);
        open.push(other);
      }
    }
    return false;
  };
  const isBack = edges.map(({ waker, sleeper }) => {
    if (leads(sleeper, waker)) return true;
    next.get(waker)?.push(sleeper);
    return false;
  });
  /** @type {Map<number, number>} */
  const layer = new Map([...next.keys()].map((node) => [node, 0]));
  for (let round = 0; round < next.size; round++) {
    let changed = false;
    edges.forEach(({ waker, sleeper }, at) => {
      if (isBack[at]) return;
      const least = (layer.get(waker) ?? 0) + 1;
      if ((layer.get(sleeper) ?? 0) < least) {
        layer.set(sleeper, least);
        changed = true;
      }
    });
    if (!changed) break;
  }
  /** @type {number[][]} */
  const layers = [];
  for (const [node, of] of layer) (layers[of] ??= []).push(node);
  // A long edge has a place in each layer between its ends, so that it does not cross boxes.
  /** @type {WakerEdge[]} */
  const parts = [];
  let places = 0;
  const lanes = edges.map(({ waker, sleeper, value, count }, at) => {
    /** @type {number[]} */
    const lane = [];
    if (isBack[at]) return lane;
    let from = waker;
    for (let of = (layer.get(waker) ?? 0) + 1; of < (layer.get(sleeper) ?? 0); of++) {
      const place = -1 - places++;
      layers[of].push(place);
      weights.set(place, value);
      lane.push(place);
      parts.push({ waker: from, sleeper: place, value, count });
      from = place;
    }
    parts.push({ waker: from, sleeper, value, count });
    return lane;
  });
  /** @param {number} node */
  const weight = (node) => weights.get(node) ?? 0;
  for (const nodes of layers) nodes.sort((one, other) => weight(other) - weight(one) || one - other);
  // Nodes move towards the middle of their neighbours, from the left and from the right.
  /** @type {Map<number, number>} */
  const place = new Map();
  const store = () => layers.forEach((nodes) => nodes.forEach((node, at) => place.set(node, at)));
  store();
  for (const isForward of [true, false, true, false]) {
    for (const nodes of isForward ? layers : [...layers].reverse()) {
      /** @type {Map<number, number>} */
      const middle = new Map();
      for (const node of nodes) {
        let sum = 0;
        let total = 0;
        for (const { waker, sleeper, value } of parts) {
          const other = isForward ? (sleeper === node ? waker : null) : waker === node ? sleeper : null;
          if (other === null) continue;
          sum += value * (place.get(other) ?? 0);
          total += value;
        }
        middle.set(node, total > 0 ? sum / total : (place.get(node) ?? 0));
      }
      nodes.sort((one, other) => (middle.get(one) ?? 0) - (middle.get(other) ?? 0) || weight(other) - weight(one) || one - other);
      store();
    }
  }
  return { layers, isBack, lanes };
}

/**
 * Returns the view of wakers.
 * @returns {Page.View}
 */
export function makeWakersView() {
  /** @type {Page.App} */
  let app;
  /** @type {Page.Selected | null} */
  let seen = null;
  let seenBy = "";
  /** Keys of open rows. @type {Set<string>} */
  const open = new Set();
  /** Number of children that a row shows, if it is not `FACET_ROWS`. @type {Map<string, number>} */
  const shownRows = new Map();
  /** Divided rows by key. @type {Map<string, Facet[]>} */
  let divided = new Map();
  let whole = 0;
  let focused = "";
  const line = element("p", { class: "dim" });
  const tree = element("div", { class: "facets", role: "tree", "aria-label": "Waits by thread, wait, waker and stack" });
  const graph = element("div", { class: "graph" });
  const byName = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox" }));

  /** @param {Facet} facet @returns {Facet[]} */
  const childrenOf = (facet) => {
    let found = divided.get(facet.key);
    if (!found) {
      found = divideFacet(app.selected, facet.samples, facet.level + 1, facet.key, byName.checked);
      divided.set(facet.key, found);
    }
    return found;
  };

  /** @param {Facet} facet @param {number} size @param {number} place */
  const rowOf = (facet, size, place) => {
    const isOpen = open.has(facet.key);
    const bar = svgElement("svg", { class: "share", width: 60, height: 10, "aria-hidden": "true" },
      svgElement("rect", { width: 60, height: 10, class: "share-whole" }),
      svgElement("rect", { width: whole > 0 ? ((60 * facet.value) / whole).toFixed(2) : 0, height: 10, class: "share-blocked" }));
    const row = element("div", {
      class: "facet", role: "treeitem", "aria-level": facet.level + 1, "aria-expanded": String(isOpen),
      "aria-setsize": size, "aria-posinset": place, tabindex: -1, "data-level": facet.level,
    }, element("span", { class: "twisty", "aria-hidden": "true" }, isOpen ? "▾" : "▸"),
      element("span", { class: "facet-value" }, app.value(facet.value)),
      element("span", { class: "facet-share" }, formatShare(facet.value, whole)), bar,
      element("bdi", {}, facet.text),
      // Short stays have time, but are not counted.
      element("span", { class: "dim" }, facet.count === 0 ? "" : ` ${formatCount(facet.count)} ${facet.count === 1 ? "wait" : "waits"}`));
    keys.set(row, { key: facet.key, level: facet.level, act: () => toggle(facet) });
    return row;
  };
  /** Rows in the document, with the functions that open them. @type {WeakMap<HTMLElement, { key: string, level: number, act: () => void }>} */
  const keys = new WeakMap();

  /** @param {Facet} facet */
  const stackOf = (facet) => {
    const { data } = app;
    const sample = facet.samples[0];
    const box = element("div", { class: "facet-stack", role: "treeitem", "aria-level": facet.level + 2, tabindex: -1 });
    keys.set(box, { key: `${facet.key}/stack`, level: facet.level + 1, act: () => {} });
    /** @param {string} title @param {number} node */
    const list = (title, node) => {
      const names = stackNames(data, node);
      return element("div", {}, element("h3", {}, title), stackElement(names),
        button("Copy as folded text", () => app.copy(names.join(";"))));
    };
    box.append(list("Stack of the waiting thread", data.samples.node[sample]));
    const row = firstWaker(data, sample);
    if (row >= 0 && data.wakers.node[row] > 0) box.append(list(`Stack of ${wakerName(data, row)}`, data.wakers.node[row]));
    return box;
  };

  const drawTree = () => {
    const hadFocus = tree.contains(document.activeElement);
    const rows = document.createDocumentFragment();
    const roots = divided.get("") ?? [];
    /** @type {{ list: Facet[], at: number, key: string }[]} */
    const todo = [{ list: roots, at: 0, key: "" }];
    while (todo.length > 0) {
      const now = todo[todo.length - 1];
      const most = shownRows.get(now.key) ?? FACET_ROWS;
      if (now.at >= now.list.length || now.at >= most) {
        const rest = now.list.length - most;
        if (now.at >= most && rest > 0) {
          const { key } = now;
          const { level } = now.list[0];
          const more = element("div", { class: "facet facet-more", role: "treeitem", "aria-level": level + 1, tabindex: -1, "data-level": level },
            `${formatCount(Math.min(rest, FACET_ROWS))} more of ${formatCount(rest)}`);
          keys.set(more, { key: `${key}/more`, level, act: () => {
            shownRows.set(key, most + FACET_ROWS);
            focused = now.list[most].key;
            drawTree();
          } });
          rows.append(more);
        }
        todo.pop();
        continue;
      }
      const facet = now.list[now.at++];
      rows.append(rowOf(facet, now.list.length, now.at));
      if (!open.has(facet.key)) continue;
      if (facet.level === 3) rows.append(stackOf(facet));
      else todo.push({ list: childrenOf(facet), at: 0, key: facet.key });
    }
    tree.replaceChildren(rows);
    const all = items();
    const target = all.find((item) => keys.get(item)?.key === focused) ?? all[0];
    if (target) {
      target.tabIndex = 0;
      if (hadFocus) target.focus();
    }
  };

  /** @returns {HTMLElement[]} */
  const items = () => [...tree.querySelectorAll("[role=treeitem]")].filter((item) => item instanceof HTMLElement);

  /** @param {Facet} facet */
  const toggle = (facet) => {
    focused = facet.key;
    if (!open.delete(facet.key)) {
      open.add(facet.key);
      // A row with one child needs no second click.
      let at = facet;
      while (at.level < 2) {
        const children = childrenOf(at);
        if (children.length !== 1) break;
        at = children[0];
        open.add(at.key);
      }
    }
    drawTree();
  };

  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !(event.target instanceof HTMLElement)) return;
    const facet = keys.get(event.target);
    if (!facet) return;
    const all = items();
    const at = all.indexOf(event.target);
    /** @param {HTMLElement | undefined} item */
    const go = (item) => {
      const to = item && keys.get(item);
      if (!item || !to) return;
      all[at].tabIndex = -1;
      item.tabIndex = 0;
      focused = to.key;
      item.focus();
    };
    const isOpen = open.has(facet.key);
    switch (event.key) {
      case "ArrowDown": go(all[at + 1]); break;
      case "ArrowUp": go(all[at - 1]); break;
      case "Home": go(all[0]); break;
      case "End": go(all[all.length - 1]); break;
      case "ArrowRight":
        if (isOpen) go(all[at + 1]);
        else facet.act();
        break;
      case "ArrowLeft":
        if (isOpen) facet.act();
        else go(all.slice(0, at).reverse().find((item) => (keys.get(item)?.level ?? 9) < facet.level));
        break;
      case "Enter":
      case " ": facet.act(); break;
      default: return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  const drawGraph = () => {
    const all = wakerGraph(app.selected, byName.checked);
    const listed = all.edges.slice(0, MOST_EDGES);
    if (listed.length === 0) {
      graph.replaceChildren(element("p", { class: "dim" }, "No wait of the selection has a known waker."));
      return;
    }
    const known = all.edges.reduce((sum, edge) => sum + edge.value, 0);
    const edges = listed.filter((edge) => edge.value >= known * LEAST_EDGE_SHARE);
    const { layers, isBack, lanes } = layoutLayers(edges);
    const { width, height, across, down } = GRAPH_BOX;
    /** @param {number} node */
    const heightOf = (node) => (node < 0 ? GRAPH_LANE : height);
    /** @param {number[]} nodes */
    const tallOf = (nodes) => nodes.reduce((sum, node) => sum + heightOf(node) + down, -down);
    const tallest = layers.reduce((most, nodes) => Math.max(most, tallOf(nodes)), 0);
    /** Left upper corners. @type {Map<number, { x: number, y: number }>} */
    const places = new Map();
    layers.forEach((nodes, layer) => {
      let y = 34 + (tallest - tallOf(nodes)) / 2;
      for (const node of nodes) {
        places.set(node, { x: 40 + layer * (width + across), y });
        y += heightOf(node) + down;
      }
    });
    const backs = edges.filter((edge, at) => isBack[at] && edge.waker !== edge.sleeper).length;
    const bottom = 34 + tallest + 24;
    const size = { width: 80 + layers.length * (width + across) - across, height: bottom + 18 * backs };
    const heaviest = edges[0].value;
    const svg = svgElement("svg", {
      width: size.width, height: size.height, viewBox: `0 0 ${size.width} ${size.height}`, role: "img",
      "aria-label": "Graph of the heaviest pairs of waker and woken thread. The table below has the same pairs.",
    });
    svg.append(svgElement("defs", {}, svgElement("marker", {
      id: "waker-arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9,
      orient: "auto", markerUnits: "userSpaceOnUse",
    }, svgElement("path", { d: "M0,0 L8,4 L0,8 z", class: "edge-head" }))));
    const texts = [];
    let back = 0;
    for (const [at, edge] of edges.entries()) {
      const one = places.get(edge.waker);
      const other = places.get(edge.sleeper);
      if (!one || !other) continue;
      const from = { x: one.x + width, y: one.y + height / 2 };
      const to = { x: other.x, y: other.y + height / 2 };
      let path;
      let middle;
      if (edge.waker === edge.sleeper) {
        const top = one.y - 14;
        path = `M${one.x + width - 30},${one.y} C${one.x + width - 25},${top - 8} ${one.x + 25},${top - 8} ${one.x + 30},${one.y}`;
        middle = { x: one.x + width / 2, y: top - 7 };
      } else if (isBack[at]) {
        const low = bottom + 18 * back++;
        path = `M${from.x},${from.y} C${from.x + 50},${from.y} ${from.x + 50},${low} ${from.x},${low} `
          + `L${to.x},${low} C${to.x - 50},${low} ${to.x - 50},${to.y} ${to.x},${to.y}`;
        middle = { x: (from.x + to.x) / 2, y: low - 3 };
      } else {
        let { x, y } = from;
        path = `M${x},${y}`;
        /** @param {number} toX @param {number} toY */
        const curve = (toX, toY) => ` C${(x + toX) / 2},${y} ${(x + toX) / 2},${toY} ${toX},${toY}`;
        for (const place of lanes[at]) {
          const lane = places.get(place);
          if (!lane) continue;
          path += curve(lane.x, lane.y + GRAPH_LANE / 2);
          [x, y] = [lane.x + width, lane.y + GRAPH_LANE / 2];
          path += ` L${x},${y}`;
        }
        path += curve(to.x, to.y);
        middle = { x: (x + to.x) / 2, y: (y + to.y) / 2 - 3 };
      }
      const text = `${all.names[edge.waker]} woke ${all.names[edge.sleeper]}: ${app.value(edge.value)}, ${formatCount(edge.count)} waits`;
      svg.append(svgElement("path", {
        d: path, class: isBack[at] && edge.waker !== edge.sleeper ? "edge edge-back" : "edge", "stroke-width": (1 + (6 * edge.value) / heaviest).toFixed(1),
        "marker-end": "url(#waker-arrow)",
      }, svgElement("title", {}, text)));
      texts.push(svgElement("text", { x: middle.x, y: middle.y, class: "edge-text", "text-anchor": "middle" }, app.value(edge.value)));
    }
    for (const [node, { x, y }] of places) {
      if (node < 0) continue;
      const name = all.names[node];
      svg.append(svgElement("g", {}, svgElement("title", {}, name),
        svgElement("rect", { x, y, width, height, rx: 4, class: "graph-box" }),
        svgElement("text", { x: x + 8, y: y + height / 2 + 4, class: "graph-text" }, name.length > 24 ? `${name.slice(0, 23)}…` : name)));
    }
    svg.append(...texts);
    const body = element("tbody");
    for (const edge of listed) {
      body.append(element("tr", {}, element("td", {}, element("bdi", {}, all.names[edge.waker])),
        element("td", {}, element("bdi", {}, all.names[edge.sleeper])),
        element("td", {}, app.value(edge.value)), element("td", {}, formatShare(edge.value, whole)),
        element("td", {}, formatCount(edge.count))));
    }
    const rest = all.edges.length - edges.length;
    const header = element("tr");
    for (const title of ["Waker", "Woken thread", "Time", "Share", "Waits"]) header.append(element("th", { scope: "col" }, title));
    graph.replaceChildren(
      element("p", { class: "dim" }, "An arrow leads from a waker to the thread that it woke. The time is what the woken thread waited."
        + (backs > 0 ? " Dashed arrows close a circle." : "") + (rest > 0 ? ` Lighter pairs are not drawn: ${formatCount(rest)}.` : "")),
      element("div", { class: "graph-scroller", tabindex: 0, role: "region", "aria-label": "Graph of wakers" }, svg),
      element("details", {}, element("summary", {}, "The pairs as a table"), element("table", {}, element("thead", {}, header), body)));
  };

  return {
    id: "wakers",
    title: "Wakers",
    isAvailable({ data }) {
      for (let sample = 0; sample < data.samples.measured; sample++) if (isWait(data, sample)) return true;
      return false;
    },
    mount(root, given) {
      app = given;
      byName.addEventListener("change", () => app.setOption("wakers.by", byName.checked ? "name" : "thread", "replace"));
      root.append(line, element("p", {}, element("label", {}, byName, " Show threads of one name in one process as one")), tree,
        element("h2", {}, "Who wakes whom"), graph);
      tree.addEventListener("click", (event) => {
        const item = /** @type {HTMLElement} */ (event.target).closest("[role=treeitem]");
        const isButton = event.target instanceof HTMLButtonElement;
        if (item instanceof HTMLElement && !isButton) keys.get(item)?.act();
      });
      tree.addEventListener("keydown", press);
    },
    update(given) {
      app = given;
      const { selected } = app;
      const by = app.option("wakers.by");
      if (selected === seen && by === seenBy) return;
      byName.checked = by === "" ? selected.data.threads.length > MOST_EDGES : by === "name";
      seen = selected;
      seenBy = by;
      const roots = divideFacet(selected, blockedSamples(selected), 0, "", byName.checked);
      whole = roots.reduce((sum, facet) => sum + facet.value, 0);
      divided = new Map([["", roots]]);
      line.textContent = roots.length === 0
        ? "The selection has no blocked time. Perhaps a filter hides it."
        : `${selected.data.samples.state.subarray(0, selected.data.samples.measured).includes(3) ? "Blocked" : "Off the CPU"} ${app.value(whole)}, by thread, wait, waker and stack. Shares are of this time.`;
      drawTree();
      drawGraph();
    },
    drawn: () => divided.get(""),
    keys: [["↑ ↓ → ←", "go through the tree of waits, open and close rows"], ["Enter", "open or close a row"]],
  };
}
