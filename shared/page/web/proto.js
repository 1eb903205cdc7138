// Reads protocol buffers: the records of a capture, as shared/capture/capture.proto describes them.

/** A capture that is cut short, damaged or edited. The message is a sentence for the user. */
export class CaptureError extends Error {}

/**
 * Returns the error for a part of the capture that no tool writes.
 * @param {string} fault
 * @returns {CaptureError}
 */
export function damaged(fault) {
  return new CaptureError(`the capture in this page is damaged: ${fault}`);
}

const UTF8 = new TextDecoder();
/** Longest text in bytes that is decoded without a TextDecoder. */
const SHORT_TEXT = 64;
/** Control characters, line separators and controls of bidirectional text, as in `profile::Text`. */
const HOSTILE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Reads the fields of one message between `place` and `end`. */
export class Reader {
  /**
   * @param {Uint8Array} bytes
   * @param {number} [place]
   * @param {number} [end]
   */
  constructor(bytes, place = 0, end = bytes.length) {
    this.bytes = bytes;
    this.place = place;
    this.end = end;
    /** Number of the field that `next()` found. */
    this.field = 0;
    /** Wire type of the field: 0 a varint, 1 eight bytes, 2 bytes with their length, 5 four bytes. */
    this.wire = 0;
  }

  /**
   * Goes to the next field. Returns false at the end of the message.
   * @returns {boolean}
   */
  next() {
    if (this.place >= this.end) {
      if (this.place > this.end) throw damaged("a record ends in the middle of a number");
      return false;
    }
    const key = this.uint();
    this.field = Math.floor(key / 8);
    this.wire = key % 8;
    return true;
  }

  /** Passes over the field that `next()` found. */
  skip() {
    if (this.wire === 0) this.uint();
    else if (this.wire === 1) this.place += 8;
    else if (this.wire === 2) this.place = this.bounds();
    else if (this.wire === 5) this.place += 4;
    else throw damaged("a field is of no known type");
    if (this.place > this.end) throw damaged("a field is longer than its record");
  }

  /**
   * Returns a varint. Numbers from 2^53 on are rounded.
   * @returns {number}
   */
  uint() {
    const bytes = this.bytes;
    let byte = bytes[this.place++];
    if (byte < 128) return byte;
    let value = byte & 127;
    byte = bytes[this.place++];
    value |= (byte & 127) << 7;
    if (byte < 128) return value;
    byte = bytes[this.place++];
    value |= (byte & 127) << 14;
    if (byte < 128) return value;
    byte = bytes[this.place++];
    value |= (byte & 127) << 21;
    let factor = 0x10000000;
    // The last byte of ten holds one bit.
    for (let more = 0; byte >= 128; more++) {
      if (more === 6) throw damaged("a number is too long");
      byte = bytes[this.place++];
      value += (byte & 127) * factor;
      factor *= 128;
    }
    if (byte === undefined) throw damaged("it ends in the middle of a number");
    return value;
  }

  /**
   * Returns a varint of any size.
   * @returns {bigint}
   */
  big() {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.bytes[this.place++];
      if (byte === undefined) throw damaged("it ends in the middle of a number");
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asUintN(64, value);
    }
    throw damaged("a number is too long");
  }

  /**
   * Returns the end of a field of bytes, whose length is the next number. The reader is at its start
   * then.
   * @returns {number}
   */
  bounds() {
    if (this.wire !== 2) throw damaged("a field is of another type than its name says");
    const length = this.uint();
    const end = this.place + length;
    if (end > this.end) throw damaged("a field is longer than its record");
    return end;
  }

  /**
   * Returns a reader of the message in the field, and goes past it.
   * @returns {Reader}
   */
  message() {
    const end = this.bounds();
    const reader = new Reader(this.bytes, this.place, end);
    this.place = end;
    return reader;
  }

  /** @returns {Uint8Array} */
  raw() {
    const end = this.bounds();
    const raw = this.bytes.subarray(this.place, end);
    this.place = end;
    return raw;
  }

  /** @returns {string} */
  text() {
    const end = this.bounds();
    const start = this.place;
    this.place = end;
    const bytes = this.bytes;
    if (end - start <= SHORT_TEXT) {
      let text = "";
      let place = start;
      for (; place < end && bytes[place] > 31 && bytes[place] < 127; place++) text += String.fromCharCode(bytes[place]);
      if (place === end) return text;
    }
    // A page may have been edited, so its names may be as no tool writes them.
    return UTF8.decode(bytes.subarray(start, end)).replace(HOSTILE, "?");
  }
}

/** A column of numbers that grows. */
export class Column {
  /** @param {new (length: number) => Int32Array | Uint32Array | Uint8Array | Float64Array} type */
  constructor(type) {
    this.type = type;
    this.rows = new type(64);
    this.count = 0;
  }

  /** @param {number} length Rows for which the column must have capacity. */
  reserve(length) {
    if (length <= this.rows.length) return;
    const rows = new this.type(Math.max(length, 2 * this.rows.length));
    rows.set(/** @type {any} */ (this.rows.subarray(0, this.count)));
    this.rows = rows;
  }

  /** @param {number} value */
  push(value) {
    if (this.count === this.rows.length) this.reserve(this.count + 1);
    this.rows[this.count++] = value;
  }

  /**
   * Appends the numbers of a repeated field, packed or not.
   * @param {Reader} reader
   */
  take(reader) {
    if (reader.wire === 0) {
      this.push(reader.uint());
      return;
    }
    const end = reader.bounds();
    this.reserve(this.count + (end - reader.place));
    const { bytes } = reader;
    const rows = this.rows;
    let count = this.count;
    while (reader.place < end) {
      const byte = bytes[reader.place];
      if (byte < 128) {
        rows[count++] = byte;
        reader.place++;
      } else {
        rows[count++] = reader.uint();
      }
    }
    if (reader.place > end) throw damaged("a column ends in the middle of a number");
    this.count = count;
  }

  /**
   * Appends instants: the first absolute, the others as differences. They become ns since `start`.
   * @param {Reader} reader
   * @param {bigint} start
   */
  takeInstants(reader, start) {
    const end = reader.bounds();
    let instant = 0;
    let isFirst = true;
    this.reserve(this.count + (end - reader.place));
    while (reader.place < end) {
      if (isFirst) {
        instant = Number(BigInt.asIntN(64, unzigzag(reader.big()) - start));
        isFirst = false;
      } else {
        // Differences of instants of one capture have at most 53 bits.
        const value = reader.uint();
        instant += value % 2 === 0 ? value / 2 : -(value + 1) / 2;
      }
      this.push(instant);
    }
    if (reader.place > end) throw damaged("a column ends in the middle of a number");
  }

  /**
   * Fills the column with a value up to a length.
   * @param {number} length
   * @param {number} value
   */
  fill(length, value) {
    this.reserve(length);
    while (this.count < length) this.rows[this.count++] = value;
  }

  /** @returns {Int32Array} */
  ints() {
    return /** @type {Int32Array} */ (this.rows.subarray(0, this.count));
  }

  /** @returns {Uint32Array} */
  uints() {
    return /** @type {Uint32Array} */ (this.rows.subarray(0, this.count));
  }

  /** @returns {Uint8Array} */
  bytes() {
    return /** @type {Uint8Array} */ (this.rows.subarray(0, this.count));
  }

  /** @returns {Float64Array} */
  floats() {
    return /** @type {Float64Array} */ (this.rows.subarray(0, this.count));
  }
}

/**
 * @param {bigint} value
 * @returns {bigint}
 */
function unzigzag(value) {
  return value & 1n ? -((value + 1n) >> 1n) : value >> 1n;
}
