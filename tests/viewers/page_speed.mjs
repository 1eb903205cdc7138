// Opens a page in Chromium and prints how fast it is, as one JSON object with times in ms: `paint`,
// `usable`, and the median and the 95th percentile of the steps `zoom` and `filter`.
//
//     node page_speed.mjs PROGRAM PAGE

import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const [program, path] = process.argv.slice(2);
const PATIENCE = 300_000;

const browser = await puppeteer.launch({
  executablePath: program, headless: true, timeout: PATIENCE, protocolTimeout: PATIENCE,
  defaultViewport: { width: 1400, height: 850 },
  args: ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--no-first-run"],
});
const tab = await browser.newPage();
// The page is usable two frames after its views appear.
await tab.evaluateOnNewDocument(() => {
  new MutationObserver(() => {
    const app = document.getElementById("app");
    if (app && !app.hidden && window.usableAt === undefined) {
      window.usableAt = null;
      requestAnimationFrame(() => requestAnimationFrame(() => { window.usableAt = performance.now(); }));
    }
  }).observe(document, { subtree: true, attributes: true, childList: true });
});
await tab.goto(`${pathToFileURL(path)}#view=flame`, { timeout: PATIENCE });
await tab.waitForFunction(() => window.usableAt > 0, { timeout: PATIENCE, polling: 20 });

const answer = await tab.evaluate(async () => {
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  const canvas = document.querySelector(".view-flame canvas");
  // A step ends when the frame that it asked for is drawn.
  const nextFrame = window.requestAnimationFrame.bind(window);
  let asked = [];
  window.requestAnimationFrame = (draw) => asked.push(draw);
  const measure = async (count, step) => {
    const times = [];
    for (let at = 0; at < count; at += 1) {
      await new Promise((resolve) => { nextFrame(resolve); });
      const begun = performance.now();
      step(at);
      for (const draw of asked.splice(0)) draw(performance.now());
      canvas.getContext("2d").getImageData(0, 0, 1, 1);
      times.push(performance.now() - begun);
    }
    times.sort((one, other) => one - other);
    return { median: times[count >> 1], most: times[Math.floor(count * 0.95)] };
  };
  const zoom = await measure(60, (at) => {
    const place = canvas.getBoundingClientRect();
    const clientX = place.left + 30 + ((at * 97) % 1000);
    const clientY = place.top + 19 * ((at * 7) % 12) + 5;
    canvas.dispatchEvent(new MouseEvent("click", { clientX, clientY, bubbles: true }));
  });
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "0", bubbles: true }));
  const filter = await measure(20, () => {
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: ".", bubbles: true }));
  });
  return { paint: paint.startTime, usable: window.usableAt, zoom, filter };
});
console.log(JSON.stringify(answer));
await browser.close();
