/**
 * Decodes the records of a capture.
 * @param {Uint8Array} bytes
 * @returns {Page.Data}
 */
export function decodeCapture(bytes) {
  throw new Error(`not written yet: ${bytes.length}`);
}
