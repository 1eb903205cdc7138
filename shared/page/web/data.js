// Decodes a capture into typed arrays, and makes the texts of waits.

import { IDLENESS_NAMES, REASON_NAMES } from "./format.js";
import { CaptureError, Column, damaged, Reader } from "./proto.js";
import { mergeTree } from "./tree.js";

/** Largest PID that one number holds together with a TID. */
const LARGEST_ID = 0x4000000;
/** Texts of running, runnable and blocked time in a time range that no stack explains. */
const NO_STACK_TEXTS = ["[running, no sample]", "[runnable, no stack in the timeline]", "[blocked, no stack in the timeline]"];
const KIND_MARKER = 3;
const KIND_PYTHON = 4;
const PROTOCOL_NAMES = new Map([[6, "tcp"], [17, "udp"]]);
const AF_NETLINK = 16;
const SIDE_LISTENS = 1;

/**
 * Returns a data block of the page as bytes, or null if the page has none of this ID.
 * @param {string} id
 * @returns {Promise<Uint8Array | null>}
 */
export async function readBlock(id) {
  const block = document.getElementById(id);
  if (block === null) return null;
  const version = Number(block.getAttribute("data-version"));
  if (version !== 2) {
    throw new CaptureError(`the capture in this page has version ${version}, and the page reads version 2`);
  }
  const packed = decodeBase64(block.textContent ?? "");
  if (typeof DecompressionStream === "undefined") {
    throw new CaptureError("this browser cannot unpack the capture: it lacks DecompressionStream (Chrome 80, Firefox 113 and Safari 16.4 have it)");
  }
  return unpack(packed);
}

/**
 * @param {string} text
 * @returns {Uint8Array}
 */
function decodeBase64(text) {
  try {
    const fast = /** @type {any} */ (Uint8Array).fromBase64;
    if (fast !== undefined) return fast.call(Uint8Array, text);
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let place = 0; place < binary.length; place++) bytes[place] = binary.charCodeAt(place);
    return bytes;
  } catch {
    throw new CaptureError("the capture in this page is cut short or was edited: it is not base64");
  }
}

/**
 * @param {Uint8Array} packed
 * @returns {Promise<Uint8Array>}
 */
async function unpack(packed) {
  const stream = new Blob([/** @type {any} */ (packed)]).stream().pipeThrough(new DecompressionStream("deflate"));
  /** @type {Uint8Array[]} */
  const parts = [];
  let length = 0;
  try {
    const reader = stream.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      length += value.length;
    }
  } catch {
    throw new CaptureError("the capture in this page is cut short or was edited: it does not unpack");
  }
  const bytes = new Uint8Array(length);
  let place = 0;
  for (const part of parts) {
    bytes.set(part, place);
    place += part.length;
  }
  return bytes;
}

/**
 * Decodes the records of a capture.
 * @param {Uint8Array} bytes
 * @returns {Page.Data}
 */
export function decodeCapture(bytes) {
  const rows = new CaptureRows();
  const reader = new Reader(bytes);
  let isComplete = false;
  while (reader.place < bytes.length && !isComplete) {
    const length = reader.uint();
    const end = reader.place + length;
    if (end > bytes.length) throw damaged("its last record is cut short");
    const record = new Reader(bytes, reader.place, end);
    while (record.next()) {
      if (record.wire !== 2) record.skip();
      else isComplete = rows.take(record.field, record.message()) || isComplete;
    }
    reader.place = end;
  }
  if (!isComplete) throw damaged("its end is missing");
  if (reader.place < bytes.length) throw damaged("something comes after its end");
  return rows.finish();
}

/** The columns of `Samples`, by field number. */
const SAMPLE_FIELDS = /** @type {[number, string][]} */ ([
  [1, "comms"], [2, "pids"], [3, "tids"], [4, "users"], [5, "kernels"], [6, "states"], [7, "chains"],
  [8, "values"], [9, "events"], [10, "longest"], [12, "shortest"], [13, "squares"], [14, "waits"],
]);
const FLOAT_FIELDS = new Set(["values", "events", "longest", "shortest", "squares"]);

/** Rows of a capture as they are in the file. */
class CaptureRows {
  constructor() {
    /** @type {Map<string, Column>} */
    this.samples = new Map();
    for (const [, name] of SAMPLE_FIELDS) {
      this.samples.set(name, new Column(FLOAT_FIELDS.has(name) ? Float64Array : Uint32Array));
    }
    /** @type {Map<number, string>} */
    this.sampleFields = new Map(SAMPLE_FIELDS);
    /** @type {string[]} */
    this.names = [];
    this.modules = new Column(Uint32Array);
    this.frameNames = new Column(Uint32Array);
    this.frameKinds = new Column(Uint8Array);
    this.frameModules = new Column(Uint32Array);
    /** Names of the languages of interpreted frames. */
    this.languages = [""];
    this.frameLanguages = new Column(Uint8Array);
    this.callers = new Column(Uint32Array);
    this.leaves = new Column(Uint32Array);
    this.chainFirst = new Column(Int32Array);
    this.wakers = columns(["comm", "pid", "tid", "isThread", "user", "kernel"]);
    /** @type {string[]} */
    this.resources = [];
    this.waits = columns(["reason", "detail", "resource", "chain", "endedBy", "idleness", "holder", "holderPid", "holderTid"]);
    /** @type {{ comm: number, thread: Page.Thread }[]} */
    this.threads = [];
    /** @type {Page.Process[]} */
    this.processes = [];
    this.intervals = columns(["pids", "tids", "states", "samples"]);
    this.intervalStarts = new Column(Float64Array);
    this.intervalLengths = new Column(Float64Array);
    this.mixedRunnable = new Column(Float64Array);
    this.mixedBlocked = new Column(Float64Array);
    this.timed = columns(["pids", "tids", "cpus", "samples"]);
    this.timedTimes = new Column(Float64Array);
    this.events = columns(["pids", "tids", "changes", "names"]);
    this.eventTimes = new Column(Float64Array);
    this.spans = columns(["names", "pids", "tids", "parents"]);
    this.spanStarts = new Column(Float64Array);
    this.spanLengths = new Column(Float64Array);
    /** Start of the window in ns of CLOCK_MONOTONIC. */
    this.start = 0n;
    /** @type {Page.Meta} */
    this.meta = {
      tool: "", toolVersion: "", commandLine: [], host: "", kernel: "", cpus: 0, targets: "",
      startNs: 0, startUtcMs: 0, lengthNs: 0, each: 1, lengths: null, bursts: [0, 0, 0, 0],
      timelineLeastNs: -1,
    };
    this.unit = 0;
    this.event = "";
    this.isTime = true;
    /** @type {Page.Losses} */
    this.losses = { events: 0, stacks: 0, threads: 0, incompleteUser: 0, times: 0 };
    /** @type {Page.WalkEnds} */
    this.walkEnds = {
      root: 0, byFramePointer: 0, noMapping: 0, readFailed: 0, tooDeep: 0, noRule: 0, code32Bit: 0,
    };
    /** @type {Map<number | string, number>} */
    this.threadNumbers = new Map();
    this.lastPid = -1;
    this.lastTid = -1;
    this.lastThread = -1;
    /** @type {Page.Thread[]} */
    this.threadRows = [];
  }

  /**
   * Takes a record. Returns true for the last record of a capture.
   * @param {number} kind
   * @param {Reader} reader
   * @returns {boolean}
   */
  take(kind, reader) {
    switch (kind) {
      case 1: this.takeMeta(reader); break;
      case 2: eachField(reader, 1, () => this.names.push(reader.text())); break;
      case 3: eachField(reader, 1, () => this.takeModule(reader.message())); break;
      case 4: eachField(reader, 1, () => this.takeFrame(reader.message())); break;
      case 5: takeColumns(reader, [[1, this.callers], [2, this.leaves]]); break;
      case 6: eachField(reader, 1, () => this.takeChain(reader.message())); break;
      case 7: this.takeSamples(reader); break;
      case 8: eachField(reader, 1, () => this.takeThread(reader.message())); break;
      case 10: eachField(reader, 1, () => this.takeProcess(reader.message())); break;
      case 12: this.takeIntervals(reader); break;
      case 13: this.takeTimed(reader); break;
      case 14: this.takeSpans(reader); break;
      case 15: this.takeEnd(reader); return true;
      case 16: eachField(reader, 1, () => this.resources.push(this.takeResource(reader.message()))); break;
      case 17: eachField(reader, 1, () => this.takeWait(reader.message())); break;
      case 18: this.takeEvents(reader); break;
      default: break;
    }
    return false;
  }

  /** @param {Reader} reader */
  takeMeta(reader) {
    const { meta } = this;
    let frequency = 0;
    let period = 0;
    while (reader.next()) {
      switch (reader.field) {
        case 1: meta.tool = reader.text(); break;
        case 2: meta.toolVersion = reader.text(); break;
        case 3: this.unit = reader.uint(); break;
        case 4: meta.commandLine.push(reader.text()); break;
        case 5: meta.host = reader.text(); break;
        case 6: meta.kernel = reader.text(); break;
        case 7: meta.cpus = reader.uint(); break;
        case 8: this.takeWindow(reader.message()); break;
        case 9: meta.targets = reader.text(); break;
        case 10: {
          const sampling = reader.message();
          while (sampling.next()) {
            if (sampling.field === 1) this.event = sampling.text();
            else if (sampling.field === 2) frequency = sampling.uint();
            else if (sampling.field === 3) period = sampling.uint();
            else sampling.skip();
          }
          break;
        }
        case 11: {
          const lengths = { least: 0, most: 0, shortAreSampled: false };
          const message = reader.message();
          while (message.next()) {
            if (message.field === 1) lengths.least = message.uint();
            else if (message.field === 2) lengths.most = message.uint();
            else if (message.field === 3) lengths.shortAreSampled = message.uint() !== 0;
            else message.skip();
          }
          meta.lengths = lengths;
          break;
        }
        case 12: {
          const message = reader.message();
          let state = 0;
          let percent = 0;
          while (message.next()) {
            if (message.field === 1) state = message.uint();
            else if (message.field === 2) percent = message.uint();
            else message.skip();
          }
          if (state < 4) meta.bursts[state] = percent;
          break;
        }
        case 13: meta.timelineLeastNs = reader.uint() - 1; break;
        default: reader.skip();
      }
    }
    if (this.unit !== 2) this.setSampling(frequency, period);
  }

  /**
   * Finds what a CPU sample stands for, as `Sampling::each()` in Rust.
   * @param {number} frequency
   * @param {number} period
   */
  setSampling(frequency, period) {
    const isClock = this.event === "cpu-clock" || this.event === "task-clock";
    const isCycles = this.event === "cpu-cycles" || this.event === "cycles";
    if (period !== 0) {
      this.isTime = isClock;
      this.meta.each = period;
    } else {
      this.isTime = frequency !== 0 && (isClock || isCycles);
      this.meta.each = this.isTime ? Math.floor(1e9 / frequency) : 1;
    }
    if (period === 0 && !this.isTime) this.event = "samples";
  }

  /** @param {Reader} reader */
  takeWindow(reader) {
    while (reader.next()) {
      if (reader.field === 1) this.start = reader.big();
      else if (reader.field === 2) this.meta.startUtcMs = Number(reader.big() / 1000000n);
      else if (reader.field === 3) this.meta.lengthNs = reader.uint();
      else reader.skip();
    }
    this.meta.startNs = Number(this.start);
  }

  /** @param {Reader} reader */
  takeModule(reader) {
    let path = 0;
    while (reader.next()) {
      if (reader.field === 1) path = reader.uint();
      else reader.skip();
    }
    this.modules.push(path);
  }

  /** @param {Reader} reader */
  takeFrame(reader) {
    let name = 0;
    let kind = 0;
    let module = 0;
    let language = "";
    while (reader.next()) {
      if (reader.field === 1) name = reader.uint();
      else if (reader.field === 2) kind = reader.uint();
      else if (reader.field === 3) module = reader.uint();
      else if (reader.field === 9) language = reader.text();
      else reader.skip();
    }
    if (kind === KIND_PYTHON) language = "python";
    this.frameNames.push(name);
    this.frameKinds.push(kind);
    this.frameModules.push(module);
    this.frameLanguages.push(this.languageNumber(language));
  }

  /**
   * Returns the number of a language in `languages`, or 0 if there are too many to number.
   * @param {string} name
   * @returns {number}
   */
  languageNumber(name) {
    const known = this.languages.indexOf(name);
    if (known >= 0) return known;
    return this.languages.length < 256 ? this.languages.push(name) - 1 : 0;
  }

  /** @param {Reader} reader */
  takeChain(reader) {
    const { wakers } = this;
    this.chainFirst.push(wakers.comm.count);
    eachField(reader, 1, () => {
      const waker = reader.message();
      const values = [0, 0, 0, 0, 0, 0, 0];
      while (waker.next()) {
        if (waker.field < values.length && waker.wire === 0) values[waker.field] = waker.uint();
        else waker.skip();
      }
      wakers.comm.push(values[1]);
      wakers.pid.push(values[2]);
      wakers.tid.push(values[3]);
      wakers.isThread.push(values[4]);
      wakers.user.push(values[5]);
      wakers.kernel.push(values[6]);
    });
  }

  /** @param {Reader} reader */
  takeSamples(reader) {
    const { samples } = this;
    const before = column(samples, "comms").count;
    while (reader.next()) {
      const name = this.sampleFields.get(reader.field);
      if (name === undefined) reader.skip();
      else column(samples, name).take(reader);
    }
    const count = column(samples, "comms").count;
    for (const [name, numbers] of samples) {
      // Columns that are empty in a record, because no sample has such a value.
      if (numbers.count === before) numbers.fill(count, 0);
      if (numbers.count !== count) throw damaged(`a sample has no value in the column ${name}`);
    }
  }

  /** @param {Reader} reader */
  takeThread(reader) {
    const values = new Float64Array(11);
    while (reader.next()) {
      if (reader.wire !== 0) reader.skip();
      else if (reader.field === 4 || reader.field === 5) {
        values[reader.field] = Number(BigInt.asIntN(64, reader.big() - this.start));
      } else if (reader.field < values.length) values[reader.field] = reader.uint();
      else reader.skip();
    }
    const [, pid, tid, comm, startedNs, endedNs, runningNs, runnableNs, blockedNs, voluntary, involuntary] = values;
    this.threads.push({
      comm,
      thread: {
        pid, tid, name: "", label: "", key: "", process: -1, hasClock: true,
        startedNs, endedNs, runningNs, runnableNs, blockedNs, voluntary, involuntary,
      },
    });
  }

  /** @param {Reader} reader */
  takeProcess(reader) {
    /** @type {Page.Process} */
    const process = {
      pid: 0, parent: 0, name: "", label: "", executable: "", commandLine: [], cgroup: "", isKernel: false,
    };
    while (reader.next()) {
      switch (reader.field) {
        case 1: process.pid = reader.uint(); break;
        case 2: process.parent = reader.uint(); break;
        case 4: process.executable = reader.text(); break;
        case 5: process.commandLine.push(reader.text()); break;
        case 6: process.cgroup = reader.text(); break;
        case 7: process.isKernel = reader.uint() !== 0; break;
        default: reader.skip();
      }
    }
    this.processes.push(process);
  }

  /** @param {Reader} reader */
  takeIntervals(reader) {
    const { intervals } = this;
    while (reader.next()) {
      switch (reader.field) {
        case 1: intervals.pids.take(reader); break;
        case 2: intervals.tids.take(reader); break;
        case 3: this.intervalStarts.takeInstants(reader, this.start); break;
        case 4: this.intervalLengths.take(reader); break;
        case 5: intervals.states.take(reader); break;
        case 6: intervals.samples.take(reader); break;
        case 7: this.mixedRunnable.take(reader); break;
        case 8: this.mixedBlocked.take(reader); break;
        default: reader.skip();
      }
    }
  }

  /** @param {Reader} reader */
  takeTimed(reader) {
    const { timed } = this;
    while (reader.next()) {
      switch (reader.field) {
        case 1: timed.pids.take(reader); break;
        case 2: timed.tids.take(reader); break;
        case 3: timed.cpus.take(reader); break;
        case 4: this.timedTimes.takeInstants(reader, this.start); break;
        case 5: timed.samples.take(reader); break;
        default: reader.skip();
      }
    }
  }

  /** @param {Reader} reader */
  takeEvents(reader) {
    const { events } = this;
    while (reader.next()) {
      switch (reader.field) {
        case 1: events.pids.take(reader); break;
        case 2: events.tids.take(reader); break;
        case 3: this.eventTimes.takeInstants(reader, this.start); break;
        case 4: events.changes.take(reader); break;
        case 5: events.names.take(reader); break;
        default: reader.skip();
      }
    }
  }

  /** @param {Reader} reader */
  takeSpans(reader) {
    const { spans } = this;
    while (reader.next()) {
      switch (reader.field) {
        case 1: spans.names.take(reader); break;
        case 2: spans.pids.take(reader); break;
        case 3: spans.tids.take(reader); break;
        case 4: this.spanStarts.takeInstants(reader, this.start); break;
        case 5: this.spanLengths.take(reader); break;
        case 6: spans.parents.take(reader); break;
        default: reader.skip();
      }
    }
  }

  /** @param {Reader} reader */
  takeEnd(reader) {
    const losses = new Float64Array(6);
    const ends = new Float64Array(8);
    while (reader.next()) {
      const into = reader.field === 1 ? losses : reader.field === 2 ? ends : null;
      if (into === null) {
        reader.skip();
        continue;
      }
      const message = reader.message();
      while (message.next()) {
        if (message.field < into.length && message.wire === 0) into[message.field] = message.uint();
        else message.skip();
      }
    }
    const [, events, stacks, threads, incompleteUser, times] = losses;
    this.losses = { events, stacks, threads, incompleteUser, times };
    const [, root, byFramePointer, noMapping, readFailed, tooDeep, noRule, code32Bit] = ends;
    this.walkEnds = { root, byFramePointer, noMapping, readFailed, tooDeep, noRule, code32Bit };
  }

  /**
   * Returns the text of a resource, as `resource_text()` in Rust.
   * @param {Reader} reader
   * @returns {string}
   */
  takeResource(reader) {
    let text = "";
    while (reader.next()) {
      switch (reader.field) {
        case 1: case 3: case 4: case 11: case 12: case 14: text = this.name(reader.uint()); break;
        case 2: text = `…/${this.name(reader.uint())}`; break;
        case 5: text = this.takeInternet(reader.message()); break;
        case 6: text = this.takeUnix(reader.message()); break;
        case 7: {
          const socket = reader.message();
          let family = 0;
          while (socket.next()) {
            if (socket.field === 1) family = socket.uint();
            else socket.skip();
          }
          text = family === AF_NETLINK ? "netlink socket" : `socket of family ${family}`;
          break;
        }
        case 8: {
          const futex = reader.message();
          let module = 0;
          let symbol = 0;
          let offset = 0n;
          while (futex.next()) {
            if (futex.field === 1) module = futex.uint();
            else if (futex.field === 2) symbol = futex.uint();
            else if (futex.field === 3) offset = futex.big();
            else futex.skip();
          }
          const name = this.name(symbol === 0 ? module : symbol - 1);
          text = symbol !== 0 && offset === 0n ? name : `${name}+0x${offset.toString(16)}`;
          break;
        }
        case 9: text = `in ${this.name(reader.uint())}`; break;
        case 10: {
          const peer = this.takePeer(reader.message());
          text = peer === "" ? "pidfd" : `pidfd of ${peer}`;
          break;
        }
        case 13: reader.skip(); text = "other"; break;
        default: reader.skip();
      }
    }
    return text;
  }

  /**
   * @param {Reader} reader
   * @returns {string}
   */
  takePeer(reader) {
    let pid = 0;
    let comm = 0;
    while (reader.next()) {
      if (reader.field === 1) pid = reader.uint();
      else if (reader.field === 2) comm = reader.uint();
      else reader.skip();
    }
    if (comm === 0) return pid === 0 ? "" : `process ${pid}`;
    return pid === 0 ? this.name(comm - 1) : `process ${pid} (${this.name(comm - 1)})`;
  }

  /**
   * @param {Reader} reader
   * @returns {string}
   */
  takeInternet(reader) {
    let protocol = 0;
    let local = "";
    let remote = "";
    let localPort = 0;
    let remotePort = 0;
    let side = 0;
    while (reader.next()) {
      switch (reader.field) {
        case 1: protocol = reader.uint(); break;
        case 2: local = addressText(reader.raw()); break;
        case 3: localPort = reader.uint(); break;
        case 4: remote = addressText(reader.raw()); break;
        case 5: remotePort = reader.uint(); break;
        case 6: side = reader.uint(); break;
        default: reader.skip();
      }
    }
    const name = PROTOCOL_NAMES.get(protocol) ?? `protocol ${protocol}`;
    const [from, to] = [endText(local, localPort), endText(remote, remotePort)];
    if (side === SIDE_LISTENS) return `${name} listening on ${from}`;
    if (localPort === 0) return remotePort === 0 ? `${name} socket` : `${name} to ${to}`;
    if (remotePort !== 0) return `${name} ${from} to ${to}`;
    return remote === "0.0.0.0" || remote === "::" ? `${name} on ${from}` : `${name} :${localPort} from ${remote}`;
  }

  /**
   * @param {Reader} reader
   * @returns {string}
   */
  takeUnix(reader) {
    let transport = 0;
    let path = 0;
    let peer = "";
    let side = 0;
    while (reader.next()) {
      switch (reader.field) {
        case 1: transport = reader.uint(); break;
        case 2: path = reader.uint(); break;
        case 3: peer = this.takePeer(reader.message()); break;
        case 4: side = reader.uint(); break;
        default: reader.skip();
      }
    }
    const kind = ["unix", "unix datagrams", "unix packets"][transport] ?? "unix";
    const name = path === 0 ? "" : this.name(path - 1);
    if (side === SIDE_LISTENS) return `${kind} listening on ${name}`;
    if (path !== 0) return `${kind} ${name}`;
    return peer === "" ? `${kind} socket` : `${kind} of ${peer}`;
  }

  /** @param {Reader} reader */
  takeWait(reader) {
    const { waits } = this;
    const values = [0, 0, 0, 0, 0, 0, 0, 0];
    const holder = [0, 0, 0, 0];
    let hasHolder = false;
    while (reader.next()) {
      if (reader.field === 4) {
        hasHolder = true;
        const message = reader.message();
        while (message.next()) {
          if (message.field < holder.length && message.wire === 0) holder[message.field] = message.uint();
          else message.skip();
        }
      } else if (reader.field < values.length && reader.wire === 0) values[reader.field] = reader.uint();
      else reader.skip();
    }
    waits.reason.push(values[1] < REASON_NAMES.length ? values[1] : 0);
    waits.detail.push(values[2]);
    waits.resource.push(values[3]);
    waits.chain.push(values[5]);
    waits.endedBy.push(values[6]);
    waits.idleness.push(values[7] < IDLENESS_NAMES.length ? values[7] : 0);
    waits.holder.push(hasHolder ? holder[1] + 1 : 0);
    waits.holderPid.push(holder[2]);
    waits.holderTid.push(holder[3]);
  }

  /**
   * Returns a name by its number.
   * @param {number} number
   * @returns {string}
   */
  name(number) {
    const name = this.names[number];
    if (name === undefined) throw damaged("a name is missing");
    return name;
  }

  /**
   * Returns the number of a thread, and adds the thread if it is new.
   * @param {number} pid
   * @param {number} tid
   * @returns {number}
   */
  thread(pid, tid) {
    if (pid === this.lastPid && tid === this.lastTid) return this.lastThread;
    const key = pid < LARGEST_ID && tid < LARGEST_ID ? pid * LARGEST_ID + tid : `${pid}/${tid}`;
    let number = this.threadNumbers.get(key);
    if (number === undefined) {
      number = this.threadRows.length;
      this.threadNumbers.set(key, number);
      this.threadRows.push(emptyThread(pid, tid));
    }
    this.lastPid = pid;
    this.lastTid = tid;
    this.lastThread = number;
    return number;
  }

  /**
   * Returns the number of the thread with a name, in captures that do not distinguish threads.
   * @param {number} comm
   * @returns {number}
   */
  threadNamed(comm) {
    const key = `=${comm}`;
    let number = this.threadNumbers.get(key);
    if (number === undefined) {
      number = this.threadRows.length;
      this.threadNumbers.set(key, number);
      const thread = emptyThread(0, 0);
      thread.name = this.name(comm);
      thread.key = `=${thread.name}`;
      this.threadRows.push(thread);
    }
    return number;
  }

  /** @returns {Page.Data} */
  finish() {
    for (const { comm, thread } of this.threads) {
      const number = this.thread(thread.pid, thread.tid);
      thread.name = this.name(comm);
      this.threadRows[number] = thread;
    }
    const stacks = new StackBuilder(this);
    const samples = this.finishSamples(stacks);
    const waits = this.finishWaits();
    const wakers = this.finishWakers(stacks);
    const times = this.finishTimes(samples.measured);
    const processes = this.finishThreads();
    const hasIntervals = times.intervals.count > 0;
    if (hasIntervals) NO_STACK_TEXTS.forEach((text) => stacks.addMarker(text));
    const { tree, pairNodes, markerNodes } = stacks.finish();
    // Until here the columns have pairs of stacks.
    for (const nodes of [samples.node, wakers.node]) {
      for (let row = 0; row < nodes.length; row++) nodes[row] = pairNodes[nodes[row]];
    }
    if (hasIntervals) this.addUnexplained(samples, markerNodes);
    finishWaitColumns(samples, waits, wakers.chains);
    const value = samples.value;
    const { each } = this.meta;
    const isTime = this.unit === 2 || this.isTime;
    if (this.unit !== 2) {
      for (let row = 0; row < samples.count; row++) value[row] *= each;
    }
    return {
      meta: this.meta,
      unit: isTime ? "ns" : "events",
      eventName: isTime ? "" : this.event,
      functions: stacks.functions(),
      tree,
      samples,
      threads: this.threadRows,
      processes,
      wakers,
      waits,
      resources: this.resources,
      names: this.names,
      times,
      losses: this.losses,
      walkEnds: this.walkEnds,
    };
  }

  /**
   * @param {StackBuilder} stacks
   * @returns {Page.Samples}
   */
  finishSamples(stacks) {
    const ints = (/** @type {string} */ name) => column(this.samples, name).uints();
    const floats = (/** @type {string} */ name) => column(this.samples, name).floats();
    const [comms, pids, tids, users, kernels, states, chains, waits] =
      ["comms", "pids", "tids", "users", "kernels", "states", "chains", "waits"].map(ints);
    const count = comms.length;
    const thread = new Int32Array(count);
    const state = new Uint8Array(count);
    const sampled = new Uint8Array(count);
    const wait = new Int32Array(count);
    const chain = new Int32Array(count);
    // All CPU samples are running.
    const implied = this.unit === 2 ? 0 : 1;
    for (let row = 0; row < count; row++) {
      const bits = states[row];
      const isKnown = (bits & 4) !== 0;
      const number = isKnown ? this.thread(pids[row], tids[row]) : this.threadNamed(comms[row]);
      if (isKnown && this.threadRows[number].name === "") this.threadRows[number].name = this.name(comms[row]);
      thread[row] = number;
      state[row] = (bits & 3) || implied;
      sampled[row] = (bits >> 3) & 1;
      wait[row] = waits[row] - 1;
      chain[row] = chains[row] - 1;
    }
    const node = stacks.add(users, kernels);
    return {
      count, measured: count, thread, state, sampled, node, wait, chain,
      reason: new Uint8Array(count),
      idle: new Uint8Array(count),
      value: floats("values"),
      events: floats("events"),
      longest: floats("longest"),
      shortest: floats("shortest"),
      squares: floats("squares"),
    };
  }

  /** @returns {Page.Waits} */
  finishWaits() {
    const { waits } = this;
    const references = (/** @type {Column} */ numbers, /** @type {number} */ limit, /** @type {string} */ what) =>
      optionalRows(numbers.uints(), limit, what);
    const { length: names } = this.names;
    const chains = this.chainFirst.count;
    const detail = Int32Array.from(waits.detail.uints());
    for (const name of detail) if (name < 0 || name >= names) throw damaged("the name of a wait is missing");
    return {
      count: detail.length,
      reason: Uint8Array.from(waits.reason.uints()),
      detail,
      resource: references(waits.resource, this.resources.length, "resource"),
      holder: references(waits.holder, names, "name"),
      holderPid: Int32Array.from(waits.holderPid.uints()),
      holderTid: Int32Array.from(waits.holderTid.uints()),
      chain: references(waits.chain, chains, "chain of wakers"),
      endedBy: references(waits.endedBy, names, "name"),
      idleness: Uint8Array.from(waits.idleness.uints()),
    };
  }

  /**
   * @param {StackBuilder} stacks
   * @returns {Page.Wakers}
   */
  finishWakers(stacks) {
    const { wakers } = this;
    const [comm, pid, tid, isThread] = [wakers.comm, wakers.pid, wakers.tid, wakers.isThread].map((rows) => rows.uints());
    const count = comm.length;
    const thread = new Int32Array(count).fill(-1);
    for (let row = 0; row < count; row++) {
      this.name(comm[row]);
      if (isThread[row] === 0) continue;
      const key = pid[row] < LARGEST_ID && tid[row] < LARGEST_ID ? pid[row] * LARGEST_ID + tid[row] : `${pid[row]}/${tid[row]}`;
      thread[row] = this.threadNumbers.get(key) ?? -1;
    }
    const node = stacks.add(wakers.user.uints(), wakers.kernel.uints());
    const chains = this.chainFirst.count;
    this.chainFirst.push(count);
    return {
      chains,
      first: this.chainFirst.ints(),
      name: Int32Array.from(comm),
      pid: Int32Array.from(pid),
      tid: Int32Array.from(tid),
      thread,
      isThread: Uint8Array.from(isThread),
      node,
    };
  }

  /**
   * Names threads and processes, and connects them.
   * @returns {Page.Process[]}
   */
  finishThreads() {
    /** @type {Map<number, Page.Process>} */
    const runs = new Map();
    for (const process of this.processes) runs.set(process.pid, process);
    /** @type {Map<number | string, number>} */
    const numbers = new Map();
    /** @type {Page.Process[]} */
    const processes = [];
    for (const thread of this.threadRows) {
      if (thread.name === "") thread.name = "[unnamed]";
      const isKnown = thread.key === "";
      if (isKnown) {
        thread.key = `${thread.pid}/${thread.tid}`;
        thread.label = `${thread.name} ${thread.key}`;
      } else {
        thread.label = thread.name;
      }
      const key = isKnown ? thread.pid : thread.name;
      let number = numbers.get(key);
      if (number === undefined) {
        number = processes.length;
        numbers.set(key, number);
        const run = isKnown ? runs.get(thread.pid) : undefined;
        const name = run === undefined || run.executable === "" ? thread.name : baseName(run.executable);
        processes.push({
          ...(run ?? { parent: 0, executable: "", commandLine: [], cgroup: "", isKernel: false }),
          pid: thread.pid, name, label: "",
        });
      }
      thread.process = number;
      if (isKnown && thread.pid === thread.tid) processes[number].name = thread.name;
    }
    for (const process of processes) {
      process.label = process.pid === 0 ? process.name : `${process.name} ${process.pid}`;
    }
    return processes;
  }

  /**
   * @param {number} samples
   * @returns {Page.Times}
   */
  finishTimes(samples) {
    const { intervals, timed, events, spans } = this;
    const spanThreads = this.threadColumn(spans);
    const intervalThreads = this.threadColumn(intervals);
    const timedThreads = this.threadColumn(timed);
    const eventThreads = this.threadColumn(events);
    return {
      intervals: this.finishIntervals(intervalThreads, samples),
      timed: this.finishTimed(timedThreads, samples),
      events: this.finishEvents(eventThreads),
      spans: {
        count: spanThreads.length,
        name: optionalRows(spans.names.uints().map((name) => name + 1), this.names.length, "name"),
        thread: spanThreads,
        start: sized(this.spanStarts.floats(), spanThreads.length),
        length: sized(this.spanLengths.floats(), spanThreads.length),
        parent: optionalRows(spans.parents.uints(), spanThreads.length, "span"),
      },
    };
  }

  /**
   * @param {Record<string, Column>} rows
   * @returns {Int32Array}
   */
  threadColumn(rows) {
    const pids = rows.pids.uints();
    const tids = rows.tids.uints();
    if (pids.length !== tids.length) throw damaged("a row of time has no thread");
    const threads = new Int32Array(pids.length);
    for (let row = 0; row < threads.length; row++) threads[row] = this.thread(pids[row], tids[row]);
    return threads;
  }

  /**
   * @param {Int32Array} threads
   * @param {number} samples
   * @returns {Page.Intervals}
   */
  finishIntervals(threads, samples) {
    const count = threads.length;
    const starts = sized(this.intervalStarts.floats(), count);
    const lengths = sized(this.intervalLengths.floats(), count);
    const states = sized(this.intervals.states.uints(), count);
    const references = optionalRows(sized(this.intervals.samples.uints(), count), samples, "sample");
    const runnable = this.mixedRunnable.floats();
    const blocked = sized(this.mixedBlocked.floats(), runnable.length);
    const running = new Float64Array(runnable.length);
    /** Row of `mixed` for each interval. */
    let mixed = 0;
    for (let row = 0; row < count; row++) {
      const state = states[row];
      if (state === 0 || state > 4) throw damaged("an interval has no state");
      if (state !== 4) continue;
      if (mixed === running.length) throw damaged("an interval of several states has no times");
      running[mixed] = lengths[row];
      lengths[row] += runnable[mixed] + blocked[mixed];
      references[row] = mixed++;
    }
    const { order, first } = orderByThread(threads, starts, this.threadRows.length);
    return {
      count,
      first,
      start: inOrder(starts, order),
      length: inOrder(lengths, order),
      state: Uint8Array.from(inOrder(states, order)),
      sample: inOrder(references, order),
      mixed: [running, runnable, blocked],
    };
  }

  /**
   * @param {Int32Array} threads
   * @param {number} samples
   * @returns {Page.TimedSamples}
   */
  finishTimed(threads, samples) {
    const count = threads.length;
    const times = sized(this.timedTimes.floats(), count);
    const { order, first } = orderByThread(threads, times, this.threadRows.length);
    const references = Int32Array.from(sized(this.timed.samples.uints(), count));
    for (const sample of references) if (sample < 0 || sample >= samples) throw damaged("a sample is missing");
    return {
      count,
      first,
      time: inOrder(times, order),
      cpu: inOrder(Int32Array.from(sized(this.timed.cpus.uints(), count)), order),
      sample: inOrder(references, order),
    };
  }

  /**
   * @param {Int32Array} threads
   * @returns {Page.ThreadEvents}
   */
  finishEvents(threads) {
    const count = threads.length;
    const times = sized(this.eventTimes.floats(), count);
    const { order, first } = orderByThread(threads, times, this.threadRows.length);
    const names = optionalRows(sized(this.events.names.uints(), count), this.names.length, "name");
    return {
      count,
      first,
      time: inOrder(times, order),
      change: Uint8Array.from(inOrder(sized(this.events.changes.uints(), count), order)),
      name: inOrder(names, order),
    };
  }

  /**
   * Adds three samples without a value for each thread (see `Page.Samples`).
   * @param {Page.Samples} samples
   * @param {number[]} nodes Node of each state's text.
   */
  addUnexplained(samples, nodes) {
    const threads = this.threadRows.length;
    const count = samples.measured + 3 * threads;
    samples.thread = longer(samples.thread, count);
    samples.state = longer(samples.state, count);
    samples.reason = longer(samples.reason, count);
    samples.idle = longer(samples.idle, count);
    samples.node = longer(samples.node, count);
    samples.wait = longer(samples.wait, count);
    samples.chain = longer(samples.chain, count);
    samples.sampled = longer(samples.sampled, count);
    samples.value = longer(samples.value, count);
    samples.events = longer(samples.events, count);
    samples.longest = longer(samples.longest, count);
    samples.shortest = longer(samples.shortest, count);
    samples.squares = longer(samples.squares, count);
    samples.count = count;
    for (let thread = 0; thread < threads; thread++) {
      for (let state = 0; state < 3; state++) {
        const row = samples.measured + 3 * thread + state;
        samples.thread[row] = thread;
        samples.state[row] = state + 1;
        samples.node[row] = nodes[state];
        samples.wait[row] = -1;
        samples.chain[row] = -1;
      }
    }
  }
}

/**
 * Fills the columns of samples that follow from their waits.
 * @param {Page.Samples} samples
 * @param {Page.Waits} waits
 * @param {number} chains
 */
function finishWaitColumns(samples, waits, chains) {
  for (let row = 0; row < samples.measured; row++) {
    const wait = samples.wait[row];
    if (wait >= waits.count || wait < -1) throw damaged("a wait is missing");
    if (wait >= 0) {
      samples.reason[row] = waits.reason[wait];
      samples.idle[row] = waits.idleness[wait] >= 2 ? 1 : 0;
      if (samples.chain[row] === -1) samples.chain[row] = waits.chain[wait];
    }
    if (samples.chain[row] >= chains || samples.chain[row] < -1) throw damaged("a chain of wakers is missing");
  }
}

/** Builds the tree of stacks: frames of one name and kind below one caller are one node. */
class StackBuilder {
  /** @param {CaptureRows} rows */
  constructor(rows) {
    this.rows = rows;
    /** @type {string[]} */
    this.functionNames = [];
    /** @type {number[]} */
    this.functionKinds = [];
    /** @type {string[]} */
    this.functionModules = [];
    /** @type {string[]} */
    this.functionLanguages = [];
    /** @type {Map<string, number>} */
    this.functionNumbers = new Map();
    const frames = rows.frameNames.uints();
    const kinds = rows.frameKinds.bytes();
    const modules = rows.frameModules.uints();
    const languages = rows.frameLanguages.bytes();
    const moduleNames = Array.from(rows.modules.uints(), (path) => baseName(rows.name(path)));
    /** Number of each frame's function. */
    this.frameFunctions = new Int32Array(frames.length);
    for (let frame = 0; frame < frames.length; frame++) {
      const module = modules[frame] === 0 ? "" : moduleNames[modules[frame] - 1];
      if (module === undefined) throw damaged("a module is missing");
      this.frameFunctions[frame] = this.functionNumber(rows.name(frames[frame]), kinds[frame], module, rows.languages[languages[frame]]);
    }
    this.callers = rows.callers.uints();
    this.leaves = rows.leaves.uints();
    if (this.callers.length !== this.leaves.length) throw damaged("a stack has no function");
    for (let stack = 0; stack < this.callers.length; stack++) {
      if (this.callers[stack] > stack) throw damaged("a stack comes before its callers");
      if (this.leaves[stack] >= frames.length) throw damaged("a frame is missing");
    }
    /** User stack and kernel stack of each pair: a stack of both, without repetitions. */
    this.pairUsers = new Column(Int32Array);
    this.pairKernels = new Column(Int32Array);
    /** Hash table of the pairs' numbers, plus 1; 0 is free. */
    this.slots = new Int32Array(1024);
    /** Functions without callers that are no stack of the capture. @type {number[]} */
    this.markers = [];
  }

  /**
   * @param {string} name
   * @param {number} kind
   * @param {string} module
   * @param {string} language
   * @returns {number}
   */
  functionNumber(name, kind, module, language) {
    const key = `${kind}${language}\n${name}`;
    let number = this.functionNumbers.get(key);
    if (number === undefined) {
      number = this.functionNames.length;
      this.functionNumbers.set(key, number);
      this.functionNames.push(name === "" ? "[unknown]" : name);
      this.functionKinds.push(kind);
      this.functionModules.push(module);
      this.functionLanguages.push(language);
    }
    return number;
  }

  /**
   * Adds a stack of one marker, and returns its number among the markers.
   * @param {string} text
   * @returns {number}
   */
  addMarker(text) {
    return this.markers.push(this.functionNumber(text, KIND_MARKER, "", "")) - 1;
  }

  /**
   * Adds stacks, and returns the numbers of their pairs.
   * @param {Uint32Array} users
   * @param {Uint32Array} kernels
   * @returns {Int32Array}
   */
  add(users, kernels) {
    const stacks = this.callers.length;
    const pairs = new Int32Array(users.length);
    let pair = -1;
    for (let row = 0; row < pairs.length; row++) {
      const user = users[row];
      const kernel = kernels[row];
      if (user > stacks || kernel > stacks) throw damaged("a stack is missing");
      if (row === 0 || user !== users[row - 1] || kernel !== kernels[row - 1]) pair = this.pair(user, kernel);
      pairs[row] = pair;
    }
    return pairs;
  }

  /**
   * @param {number} user
   * @param {number} kernel
   * @returns {number}
   */
  pair(user, kernel) {
    const { pairUsers, pairKernels } = this;
    if (2 * pairUsers.count > this.slots.length) {
      this.slots = new Int32Array(4 * this.slots.length);
      for (let pair = 0; pair < pairUsers.count; pair++) this.slots[this.slot(pairUsers.rows[pair], pairKernels.rows[pair])] = pair + 1;
    }
    const slot = this.slot(user, kernel);
    if (this.slots[slot] === 0) {
      pairUsers.push(user);
      pairKernels.push(kernel);
      this.slots[slot] = pairUsers.count;
    }
    return this.slots[slot] - 1;
  }

  /**
   * Returns the slot of a pair, or the free slot for it.
   * @param {number} user
   * @param {number} kernel
   * @returns {number}
   */
  slot(user, kernel) {
    const mask = this.slots.length - 1;
    let slot = hashPair(user, kernel) & mask;
    for (;;) {
      const pair = this.slots[slot] - 1;
      if (pair < 0 || (this.pairUsers.rows[pair] === user && this.pairKernels.rows[pair] === kernel)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  /**
   * Builds the tree of all stacks that were added.
   * @returns {{ tree: Page.Tree, pairNodes: Int32Array, markerNodes: number[] }} Nodes of the pairs and markers.
   */
  finish() {
    const { callers, leaves, frameFunctions, markers } = this;
    const users = this.pairUsers.ints();
    const kernels = this.pairKernels.ints();
    const stacks = callers.length;
    const isUsed = new Uint8Array(stacks + 1);
    for (const user of users) isUsed[user] = 1;
    for (let stack = stacks; stack > 0; stack--) isUsed[callers[stack - 1]] |= isUsed[stack];
    const callees = rowsBy(stacks + 1, stacks, (stack) => (isUsed[stack + 1] === 1 ? callers[stack] : -1));
    const pairsOf = rowsBy(stacks + 1, users.length, (pair) => (kernels[pair] === 0 ? -1 : users[pair]));
    // Functions of kernel stacks, root first, one after another.
    const kernelFirst = new Map();
    const kernelFunctions = new Column(Int32Array);
    const kernelEnds = new Column(Int32Array);
    /** @type {number[]} */
    const path = [];
    for (const kernel of kernels) {
      if (kernel === 0 || kernelFirst.has(kernel)) continue;
      path.length = 0;
      for (let stack = kernel; stack !== 0; stack = callers[stack - 1]) path.push(frameFunctions[leaves[stack - 1]]);
      kernelFirst.set(kernel, kernelFunctions.count);
      const end = kernelFunctions.count + path.length;
      while (path.length > 0) {
        kernelFunctions.push(/** @type {number} */ (path.pop()));
        kernelEnds.push(end);
      }
    }
    const pairNodes = new Int32Array(users.length);
    const markerNodes = markers.map(() => 0);
    const stackNodes = new Int32Array(stacks + 1);
    // A member of a node is a user stack, a marker, or the place of a pair in its kernel stack.
    const steps = { pair: new Column(Int32Array), place: new Column(Int32Array) };
    const merged = mergeTree(
      this.functionNames.length,
      Int32Array.of(0),
      (member, emit) => {
        if (member >= 0) {
          for (let row = callees.first[member]; row < callees.first[member + 1]; row++) {
            const stack = callees.rows[row];
            emit(frameFunctions[leaves[stack]], stack + 1);
          }
          for (let row = pairsOf.first[member]; row < pairsOf.first[member + 1]; row++) {
            const pair = pairsOf.rows[row];
            const place = kernelFirst.get(kernels[pair]);
            steps.pair.push(pair);
            steps.place.push(place);
            emit(kernelFunctions.rows[place], -steps.pair.count);
          }
          if (member === 0) markers.forEach((fn, marker) => emit(fn, stacks + 1 + marker));
        } else {
          const step = -1 - member;
          const place = ++steps.place.rows[step];
          if (place < kernelEnds.rows[place - 1]) emit(kernelFunctions.rows[place], member);
        }
      },
      (member, node) => {
        if (member > stacks) markerNodes[member - stacks - 1] = node;
        else if (member >= 0) stackNodes[member] = node;
        else pairNodes[steps.pair.rows[-1 - member]] = node;
      },
    );
    const { tree, places } = merged;
    for (let pair = 0; pair < pairNodes.length; pair++) {
      pairNodes[pair] = places[kernels[pair] === 0 ? stackNodes[users[pair]] : pairNodes[pair]];
    }
    return { tree, pairNodes, markerNodes: markerNodes.map((node) => places[node]) };
  }

  /** @returns {Page.Functions} */
  functions() {
    return {
      count: this.functionNames.length,
      names: this.functionNames,
      kinds: Uint8Array.from(this.functionKinds),
      modules: this.functionModules,
      languages: this.functionLanguages,
    };
  }
}

/**
 * @param {number} one
 * @param {number} other
 * @returns {number}
 */
function hashPair(one, other) {
  let hash = Math.imul(one, 0x9e3779b1) ^ Math.imul(other + 0x7f4a7c15, 0x85ebca6b);
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) >>> 0;
}

/**
 * Returns the rows of each key, in the order of keys. Rows with the key -1 are left out.
 * @param {number} keys
 * @param {number} count
 * @param {(row: number) => number} keyOf
 * @returns {{ first: Int32Array, rows: Int32Array }}
 */
function rowsBy(keys, count, keyOf) {
  const first = new Int32Array(keys + 1);
  for (let row = 0; row < count; row++) {
    const key = keyOf(row);
    if (key >= 0) first[key + 1]++;
  }
  for (let key = 0; key < keys; key++) first[key + 1] += first[key];
  const next = first.slice();
  const rows = new Int32Array(first[keys]);
  for (let row = 0; row < count; row++) {
    const key = keyOf(row);
    if (key >= 0) rows[next[key]++] = row;
  }
  return { first, rows };
}

/**
 * Returns rows in the order of threads and times, with the place of each thread's first row.
 * @param {Int32Array} threads
 * @param {Float64Array} times
 * @param {number} threadCount
 * @returns {{ order: Int32Array, first: Int32Array }}
 */
function orderByThread(threads, times, threadCount) {
  const first = new Int32Array(threadCount + 1);
  for (const thread of threads) first[thread + 1]++;
  for (let thread = 0; thread < threadCount; thread++) first[thread + 1] += first[thread];
  const next = first.slice();
  const order = new Int32Array(threads.length);
  for (let row = 0; row < threads.length; row++) order[next[threads[row]]++] = row;
  for (let thread = 0; thread < threadCount; thread++) {
    let isOrdered = true;
    for (let place = first[thread] + 1; place < first[thread + 1] && isOrdered; place++) {
      isOrdered = times[order[place - 1]] <= times[order[place]];
    }
    if (!isOrdered) order.subarray(first[thread], first[thread + 1]).sort((one, other) => times[one] - times[other] || one - other);
  }
  return { order, first };
}

/**
 * @template {Int32Array | Uint32Array | Float64Array} T
 * @param {T} rows
 * @param {Int32Array} order
 * @returns {T}
 */
function inOrder(rows, order) {
  const ordered = /** @type {T} */ (new /** @type {any} */ (rows.constructor)(order.length));
  for (let place = 0; place < order.length; place++) ordered[place] = rows[order[place]];
  return ordered;
}

/**
 * Returns a column that must have a number of rows.
 * @template {Uint32Array | Float64Array} T
 * @param {T} rows
 * @param {number} count
 * @returns {T}
 */
function sized(rows, count) {
  if (rows.length !== count) throw damaged("a row of time is not complete");
  return rows;
}

/**
 * @template {Int32Array | Uint8Array | Float64Array} T
 * @param {T} rows
 * @param {number} count
 * @returns {T}
 */
function longer(rows, count) {
  const copy = /** @type {T} */ (new /** @type {any} */ (rows.constructor)(count));
  copy.set(/** @type {any} */ (rows));
  return copy;
}

/**
 * Returns row numbers that were counted from 1 as numbers from 0, with -1 for none.
 * @param {Uint32Array} numbers
 * @param {number} limit
 * @param {string} what
 * @returns {Int32Array}
 */
function optionalRows(numbers, limit, what) {
  const rows = new Int32Array(numbers.length);
  for (let row = 0; row < rows.length; row++) {
    if (numbers[row] > limit) throw damaged(`a ${what} is missing`);
    rows[row] = numbers[row] - 1;
  }
  return rows;
}

/**
 * @param {number} pid
 * @param {number} tid
 * @returns {Page.Thread}
 */
function emptyThread(pid, tid) {
  return {
    pid, tid, name: "", label: "", key: "", process: -1, hasClock: false, startedNs: 0, endedNs: 0,
    runningNs: 0, runnableNs: 0, blockedNs: 0, voluntary: 0, involuntary: 0,
  };
}

/**
 * @param {string[]} names
 * @returns {Record<string, Column>}
 */
function columns(names) {
  return Object.fromEntries(names.map((name) => [name, new Column(Uint32Array)]));
}

/**
 * @param {Map<string, Column>} all
 * @param {string} name
 * @returns {Column}
 */
function column(all, name) {
  const found = all.get(name);
  if (found === undefined) throw new Error(`no column ${name}`);
  return found;
}

/**
 * Calls `take` at each field with a number, and passes over all others.
 * @param {Reader} reader
 * @param {number} field
 * @param {() => void} take
 */
function eachField(reader, field, take) {
  while (reader.next()) {
    if (reader.field === field) take();
    else reader.skip();
  }
}

/**
 * @param {Reader} reader
 * @param {[number, Column][]} fields
 */
function takeColumns(reader, fields) {
  const byNumber = new Map(fields);
  while (reader.next()) {
    const into = byNumber.get(reader.field);
    if (into === undefined) reader.skip();
    else into.take(reader);
  }
}

/**
 * Returns the last component of a path, without brackets around it.
 * @param {string} path
 * @returns {string}
 */
function baseName(path) {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return name.startsWith("[") && name.endsWith("]") ? name.slice(1, -1) : name;
}

/**
 * Returns the text of an IPv4 or IPv6 address.
 * @param {Uint8Array} bytes
 * @returns {string}
 */
export function addressText(bytes) {
  if (bytes.length === 4) return bytes.join(".");
  if (bytes.length !== 16) return "?";
  const mapped = bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255;
  if (mapped) return `::ffff:${bytes.subarray(12).join(".")}`;
  const groups = [];
  for (let group = 0; group < 8; group++) groups.push((bytes[2 * group] * 256 + bytes[2 * group + 1]).toString(16));
  // The first of the longest runs of two zeros or more becomes `::`.
  let longest = 0;
  let from = -1;
  for (let start = 0; start < 8; start++) {
    let length = 0;
    while (start + length < 8 && groups[start + length] === "0") length++;
    if (length > longest) [longest, from] = [length, start];
  }
  if (longest < 2) return groups.join(":");
  return `${groups.slice(0, from).join(":")}::${groups.slice(from + longest).join(":")}`;
}

/**
 * @param {string} address
 * @param {number} port
 * @returns {string}
 */
function endText(address, port) {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

/**
 * Returns the text of a kind of wait: `lock: mutex`.
 * @param {Page.Data} data
 * @param {number} wait
 * @returns {string}
 */
export function kindText(data, wait) {
  const { waits } = data;
  return `${REASON_NAMES[waits.reason[wait]]}: ${data.names[waits.detail[wait]]}`;
}

/**
 * Returns the text of a wait: `lock: mutex, ledger_lock, held by writer`.
 * @param {Page.Data} data
 * @param {number} wait
 * @returns {string}
 */
export function waitText(data, wait) {
  const { waits } = data;
  let text = kindText(data, wait);
  if (waits.resource[wait] >= 0) text += `, ${data.resources[waits.resource[wait]]}`;
  if (waits.holder[wait] >= 0) text += `, held by ${data.names[waits.holder[wait]]}`;
  if (waits.idleness[wait] >= 2) text += ` (${IDLENESS_NAMES[waits.idleness[wait]]})`;
  return text;
}

/**
 * Returns the name of a waker, with its IDs if it is a thread.
 * @param {Page.Data} data
 * @param {number} row
 * @returns {string}
 */
export function wakerText(data, row) {
  const { wakers } = data;
  const name = data.names[wakers.name[row]];
  return wakers.isThread[row] === 0 ? name : `${name} ${wakers.pid[row]}/${wakers.tid[row]}`;
}

/**
 * Returns the names of a stack's functions, root first.
 * @param {Page.Data} data
 * @param {number} node Leaf in `data.tree`.
 * @returns {string[]}
 */
export function stackNames(data, node) {
  const names = [];
  for (let at = node; at > 0; at = data.tree.parent[at]) names.push(data.functions.names[data.tree.fn[at]]);
  return names.reverse();
}
