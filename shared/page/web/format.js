// Formats numbers, and names what the capture has as numbers.

/** Names of states by number. */
export const STATE_NAMES = ["unknown", "running", "runnable", "blocked", "several states"];

/** Names of reasons by the number in `capture.proto`. */
export const REASON_NAMES = [
  "unknown", "lock", "kernel lock", "condition", "child", "events", "network", "local IPC",
  "disk read", "disk write", "page fault", "memory", "throttle", "sleep", "stopped", "device",
  "kernel",
];

/** Names of idleness by number. */
export const IDLENESS_NAMES = ["unknown", "waiting", "idle", "dormant"];

/**
 * Formats a time with three digits: `1.23 s`, `45.6 ms`.
 * @param {number} ns
 * @returns {string}
 */
export function formatTime(ns) {
  const size = Math.abs(ns);
  if (size >= 1e9) return `${formatDigits(ns / 1e9)} s`;
  if (size >= 1e6) return `${formatDigits(ns / 1e6)} ms`;
  if (size >= 1e3) return `${formatDigits(ns / 1e3)} µs`;
  return `${Math.round(ns)} ns`;
}

/**
 * Formats a number with at least three digits: `1,234`, `12.3`, `1.23`.
 * @param {number} number
 * @returns {string}
 */
export function formatDigits(number) {
  const size = Math.abs(number);
  if (size >= 99.95) return formatCount(Math.round(number));
  return size >= 9.995 ? number.toFixed(1) : number.toFixed(2);
}

/**
 * Formats an integer with commas.
 * @param {number} number
 * @returns {string}
 */
export function formatCount(number) {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ",");
}

/**
 * Formats a share of a whole: `12.3 %`.
 * @param {number} part
 * @param {number} whole
 * @returns {string}
 */
export function formatShare(part, whole) {
  if (whole === 0) return "0 %";
  const percent = (100 * part) / whole;
  return `${percent >= 99.95 || percent === 0 ? percent.toFixed(0) : percent.toFixed(percent < 0.095 ? 2 : 1)} %`;
}

/**
 * Cuts a text that is longer than a person reads.
 * @param {string} text
 * @param {number} [most]
 * @returns {string}
 */
export function cutText(text, most = 400) {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
