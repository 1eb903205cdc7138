// Writes captures for tests: the records of shared/capture/capture.proto.

/**
 * @typedef {{ name: string, pid?: number, tid?: number, isThread?: boolean, user?: string[], kernel?: string[] }} MadeWaker
 * @typedef {{ reason: number, detail?: string, file?: string, idleness?: number, holder?: { name: string, pid: number, tid: number }, wakers?: MadeWaker[] }} MadeWait
 * @typedef {{ thread: number, state: number, user?: string[], kernel?: string[], value: number, events?: number, longest?: number, shortest?: number, squares?: number, sampled?: boolean, wait?: MadeWait }} MadeSample
 * @typedef {{ pid: number, tid: number, name: string, running?: number, runnable?: number, blocked?: number, started?: number, ended?: number }} MadeThread
 * @typedef {{ thread: number, start: number, state: number, length: number, sample?: number, runnable?: number, blocked?: number }} MadeInterval
 * @typedef {{ thread: number, time: number, cpu?: number, sample: number }} MadeTimed
 * @typedef {{ unit?: number, sampling?: { event: string, frequency?: number, period?: number }, startNs?: bigint, lengthNs?: number, timeline?: number, threads: MadeThread[], samples: MadeSample[], intervals?: MadeInterval[], timed?: MadeTimed[], isCut?: boolean }} MadeCapture
 */

/** Appends the parts of a message. */
class Message {
  constructor() {
    /** @type {number[]} */
    this.bytes = [];
  }

  /** @param {number | bigint} value */
  raw(value) {
    let rest = BigInt.asUintN(64, BigInt(value));
    while (rest >= 128n) {
      this.bytes.push(Number(rest & 127n) | 128);
      rest >>= 7n;
    }
    this.bytes.push(Number(rest));
    return this;
  }

  /** @param {number} field @param {number | bigint} value */
  uint(field, value) {
    if (BigInt(value) === 0n) return this;
    return this.raw(field * 8).raw(value);
  }

  /** @param {number} field @param {Message | Uint8Array | string | undefined} value */
  put(field, value) {
    if (value === undefined) return this;
    const bytes = value instanceof Message ? value.bytes : typeof value === "string" ? new TextEncoder().encode(value) : value;
    this.raw(field * 8 + 2).raw(bytes.length);
    for (const byte of bytes) this.bytes.push(byte);
    return this;
  }

  /** @param {number} field @param {(number | bigint)[]} values */
  packed(field, values) {
    const inner = new Message();
    for (const value of values) inner.raw(value);
    return values.length === 0 ? this : this.put(field, inner);
  }
}

/** Numbers of rows that are found by a text. */
class Table {
  constructor() {
    /** @type {Map<string, number>} */
    this.numbers = new Map();
    /** @type {any[]} */
    this.rows = [];
  }

  /** @param {string} key @param {any} row */
  number(key, row) {
    let number = this.numbers.get(key);
    if (number === undefined) {
      number = this.rows.length;
      this.numbers.set(key, number);
      this.rows.push(row);
    }
    return number;
  }
}

/** @param {bigint} difference */
const zigzag = (difference) => (difference >= 0n ? 2n * difference : -2n * difference - 1n);

/** @param {number[]} instants @param {bigint} start */
function instants(instants, start) {
  let before = 0n;
  return instants.map((instant) => {
    const absolute = start + BigInt(instant);
    const difference = absolute - before;
    before = absolute;
    return zigzag(difference);
  });
}

/**
 * Returns the records of a capture. Functions named in `kernel` are kernel functions; names in
 * brackets are markers.
 * @param {MadeCapture} made
 * @returns {Uint8Array}
 */
export function encodeCapture(made) {
  const names = new Table();
  const frames = new Table();
  const stacks = new Table();
  const chains = new Table();
  const resources = new Table();
  const waits = new Table();
  const name = (/** @type {string} */ text) => names.number(text, text);
  const stack = (/** @type {string[]} */ functions, /** @type {number} */ kind) => {
    let at = 0;
    for (const text of functions) {
      const its = text.startsWith("[") ? 3 : kind;
      const frame = frames.number(`${its} ${text}`, { name: name(text), kind: its });
      at = stacks.number(`${at} ${frame}`, { caller: at, frame }) + 1;
    }
    return at;
  };
  const wakerChain = (/** @type {MadeWaker[] | undefined} */ wakers) => {
    if (wakers === undefined || wakers.length === 0) return 0;
    return chains.number(JSON.stringify(wakers), wakers.map((waker) => new Message()
      .uint(1, name(waker.name)).uint(2, waker.pid ?? 0).uint(3, waker.tid ?? 0).uint(4, waker.isThread === false ? 0 : 1)
      .uint(5, stack(waker.user ?? [], 1)).uint(6, stack(waker.kernel ?? [], 2)))) + 1;
  };
  const waitOf = (/** @type {MadeWait | undefined} */ wait) => {
    if (wait === undefined) return 0;
    const resource = wait.file === undefined ? 0 : resources.number(wait.file, new Message().raw(8).raw(name(wait.file))) + 1;
    const message = new Message().uint(1, wait.reason).uint(2, name(wait.detail ?? "")).uint(3, resource);
    if (wait.holder !== undefined) {
      message.put(4, new Message().uint(1, name(wait.holder.name)).uint(2, wait.holder.pid).uint(3, wait.holder.tid));
    }
    message.uint(5, wakerChain(wait.wakers)).uint(7, wait.idleness ?? 1);
    return waits.number(JSON.stringify(wait), message) + 1;
  };
  // Name 0 is a text that no row means when a field is absent.
  name("");
  const rows = made.samples.map((sample) => ({
    comm: name(made.threads[sample.thread].name),
    user: stack(sample.user ?? [], 1),
    kernel: stack(sample.kernel ?? [], 2),
    wait: waitOf(sample.wait),
  }));
  const threads = made.threads.map((thread) => new Message()
    .uint(1, thread.pid).uint(2, thread.tid).uint(3, name(thread.name))
    .uint(4, (made.startNs ?? 1_000_000n) + BigInt(thread.started ?? 0)).uint(5, (made.startNs ?? 1_000_000n) + BigInt(thread.ended ?? made.lengthNs ?? 0))
    .uint(6, thread.running ?? 0).uint(7, thread.runnable ?? 0).uint(8, thread.blocked ?? 0));

  const start = made.startNs ?? 1_000_000n;
  /** @type {[number, Message][]} */
  const records = [];
  const meta = new Message().put(1, "made").uint(3, made.unit ?? 2).put(5, "host").uint(7, 4)
    .put(8, new Message().uint(1, start).uint(2, 1_700_000_000_000_000_000n).uint(3, made.lengthNs ?? 1_000_000_000))
    .put(9, "a test").uint(13, made.timeline ?? (made.intervals === undefined ? 0 : 100_001));
  if (made.sampling !== undefined) {
    meta.put(10, new Message().put(1, made.sampling.event).uint(2, made.sampling.frequency ?? 0).uint(3, made.sampling.period ?? 0));
  }
  records.push([1, meta]);
  const nameRecord = new Message();
  for (const text of names.rows) nameRecord.put(1, text);
  records.push([2, nameRecord]);
  const frameRecord = new Message();
  for (const frame of frames.rows) frameRecord.put(1, new Message().uint(1, frame.name).uint(2, frame.kind));
  records.push([4, frameRecord]);
  records.push([5, new Message().packed(1, stacks.rows.map((row) => row.caller)).packed(2, stacks.rows.map((row) => row.frame))]);
  const chainRecord = new Message();
  for (const wakers of chains.rows) {
    const chain = new Message();
    for (const waker of wakers) chain.put(1, waker);
    chainRecord.put(1, chain);
  }
  records.push([6, chainRecord]);
  const list = (/** @type {Message[]} */ messages) => {
    const record = new Message();
    for (const message of messages) record.put(1, message);
    return record;
  };
  records.push([16, list(resources.rows)], [17, list(waits.rows)]);
  const { samples } = made;
  const thread = (/** @type {{ thread: number }} */ row) => made.threads[row.thread];
  records.push([7, new Message()
    .packed(1, rows.map((row) => row.comm))
    .packed(2, samples.map((row) => thread(row).pid))
    .packed(3, samples.map((row) => thread(row).tid))
    .packed(4, rows.map((row) => row.user))
    .packed(5, rows.map((row) => row.kernel))
    .packed(6, samples.map((row) => row.state | 4 | (row.sampled === true ? 8 : 0)))
    .packed(7, samples.map(() => 0))
    .packed(8, samples.map((row) => row.value))
    .packed(9, samples.map((row) => row.events ?? 1))
    .packed(10, samples.map((row) => row.longest ?? 0))
    .packed(12, samples.map((row) => row.shortest ?? 0))
    .packed(13, samples.map((row) => row.squares ?? 0))
    .packed(14, rows.some((row) => row.wait > 0) ? rows.map((row) => row.wait) : [])]);
  records.push([8, list(threads)]);
  if (made.intervals !== undefined) {
    const { intervals } = made;
    const mixed = intervals.filter((row) => row.state === 4);
    records.push([12, new Message()
      .packed(1, intervals.map((row) => thread(row).pid))
      .packed(2, intervals.map((row) => thread(row).tid))
      .packed(3, instants(intervals.map((row) => row.start), start))
      .packed(4, intervals.map((row) => (row.state === 4 ? row.length - (row.runnable ?? 0) - (row.blocked ?? 0) : row.length)))
      .packed(5, intervals.map((row) => row.state))
      .packed(6, intervals.map((row) => (row.sample === undefined ? 0 : row.sample + 1)))
      .packed(7, mixed.map((row) => row.runnable ?? 0))
      .packed(8, mixed.map((row) => row.blocked ?? 0))]);
  }
  if (made.timed !== undefined) {
    const { timed } = made;
    records.push([13, new Message()
      .packed(1, timed.map((row) => thread(row).pid))
      .packed(2, timed.map((row) => thread(row).tid))
      .packed(3, timed.map((row) => row.cpu ?? 0))
      .packed(4, instants(timed.map((row) => row.time), start))
      .packed(5, timed.map((row) => row.sample))]);
  }
  if (made.isCut !== true) records.push([15, new Message()]);
  const out = new Message();
  for (const [kind, message] of records) {
    const record = new Message().put(kind, message);
    out.raw(record.bytes.length);
    for (const byte of record.bytes) out.bytes.push(byte);
  }
  return Uint8Array.from(out.bytes);
}
