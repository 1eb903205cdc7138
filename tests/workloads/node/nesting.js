// Known nestings of JavaScript calls, at the end of which the thread blocks or computes.
//
// usage: node nesting.js TRUTH RUNS        each scene blocks once, after RUNS runs that do not block
//        node nesting.js TRUTH RUNS busy   each scene computes for 50 ms, after as many runs
//
// The program prints "ready", waits for a line, runs the scenes, writes TRUTH, prints "done", and
// waits for another line. TRUTH has a line of JSON for each scene:
//   scene     name of the scene
//   chain     [name, file, line] of each frame, outermost first, from V8; the file is null for
//             functions of V8, and the name is null for functions without a name
//   seconds   time for which the scene blocked or computed, at least
'use strict';

const childProcess = require('child_process');
const { EventEmitter } = require('events');
const fs = require('fs');
const { fileURLToPath } = require('url');
const vm = require('vm');

Error.stackTraceLimit = Infinity;

const [, , truthPath, runs, mode] = process.argv;
const truth = [];
let scene;
let isMeasured = false;

const word = new Int32Array(new SharedArrayBuffer(4));

function pathOf(file) {
  if (file === null || file === undefined) {
    return '<anonymous>';
  }
  return file.startsWith('file://') ? fileURLToPath(file) : file;
}

// Returns the frames of the caller, outermost first.
function chain() {
  const prepare = Error.prepareStackTrace;
  Error.prepareStackTrace = (_, sites) => sites
    .filter((site) => !site.isAsync())
    .map((site) => [
      site.getFunctionName(),
      site.getLineNumber() === null ? null : pathOf(site.getScriptNameOrSourceURL()),
      site.getLineNumber() || 0,
    ]);
  const frames = new Error().stack;
  Error.prepareStackTrace = prepare;
  return frames.slice(1).reverse();
}

function note(seconds) {
  truth.push(JSON.stringify({ scene, chain: chain().slice(0, -1), seconds }));
}

function wait(seconds) {
  Atomics.wait(word, 0, 0, seconds * 1000);
}

function runProgram(seconds) {
  const program = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ';
  childProcess.execFileSync(process.execPath, ['-e', `${program}${seconds * 1000})`]);
}

function compute(seconds) {
  const end = Date.now() + seconds * 1000;
  let sum = 0;
  while (Date.now() < end) {
    for (let index = 0; index < 10000; index++) {
      sum += index % 7;
    }
  }
  return sum;
}

// Innermost function of every scene. The call that blocks and the call that notes the frames are
// in one line.
function end(how = wait) {
  if (isMeasured) {
    if (mode === 'busy') { compute(0.05); note(0.05); return 1; }
    how(0.02); note(0.02);
  }
  return 1;
}

class Base {
  constructor() { this.begin(); }

  begin() { return end() + 1; }

  static make() { return new this(); }

  #hidden() { return Base.make(); }

  show() { return this.#hidden(); }
}

class Derived extends Base {
  field = this.ofField();

  ofField() { return 1; }

  begin() { return super.begin() + 1; }
}

const object = {
  method() { return end() + 1; },
  get property() { return this.method() + 1; },
  set property(value) { this.value = this.property + value; },
  'a name with spaces'() { this.property = 1; return 日本語関数(); },
  '💡'() { return this['a name with spaces'](); },
};

function 日本語関数() { return ünïcode(); }
function ünïcode() { return end() + 1; }

const emitter = new EventEmitter();
emitter.on('event', function onEvent() { end(); });

function deeper(depth) { return depth === 0 ? end() : deeper(depth - 1) + 1; }

function isEven(number) { return number === 0 ? end() : isOdd(number - 1); }
function isOdd(number) { return isEven(number - 1); }

const ofScript = new vm.Script('(function inScript(call) {\n\n  return call();\n})', {
  filename: 'of-script.js',
  lineOffset: 10,
}).runInThisContext();

const manyLocals = (0, eval)(`(function many(call) {
  ${Array.from({ length: 90 }, (_, index) => `let local${index} = ${index};`).join(' ')}
  const use = function uses() {
    return call() + ${Array.from({ length: 90 }, (_, index) => `local${index}`).join(' + ')};
  };
  return use();
})`);

const scenes = {
  functions() {
    function outer() { return middle() + 1; }
    function middle() {
      const inner = () => end() + 1;
      return inner() + 1;
    }
    return outer() + 1;
  },
  closures() {
    const made = [];
    for (let index = 0; index < 3; index++) {
      made.push(function captured() { return index + end(); });
    }
    return made[1]();
  },
  anonymous() { return [() => (function () { return end(); })()][0](); },
  methods() { return object['💡'](); },
  constructors() { return new Derived(); },
  privateMethods() { return new (class Quiet extends Base { begin() { return 0; } })().show(); },
  recursion() { return deeper(500); },
  twoOfEachOther() { return isEven(20); },
  arrayMap() { return [1].map(function mapper(value) { return value + end(); }); },
  arraySort() {
    let isFirst = true;
    return [3, 1, 2].sort(function compare(one, other) {
      if (isFirst) { isFirst = false; end(); }
      return one - other;
    });
  },
  arrayReduce() { return [1, 2].reduce((sum, value) => sum + value + end(), 0); },
  replace() { return 'abc'.replace(/b/, function replacer() { return String(end()); }); },
  jsonReviver() {
    return JSON.parse('{"a": {"b": 1}}', function reviver(key, value) {
      if (key === 'b') { end(); }
      return value;
    });
  },
  jsonMethod() { return JSON.stringify({ inner: { toJSON() { return end(); } } }); },
  proxy() { return new Proxy({}, { get() { return end(); } }).property; },
  reflect() { return Reflect.apply(function applied() { return end(); }, null, []); },
  bound() { return (function viaBind() { return end(); }).bind(null, 1)(); },
  withArguments() { return (function variadic(...rest) { return rest.length + end(); })(1, 2, 3); },
  iterator() {
    const values = { next() { return { done: end() === 1 }; } };
    return [...{ [Symbol.iterator]: () => values }];
  },
  conversion() { return `${{ toString() { end(); return 'text'; } }}`; },
  generator() {
    function* values() { yield end(); }
    return [...values()].length;
  },
  evaluated() { return eval('(function inEval() { return end(); })()'); },
  script() { return ofScript(end); },
  manyLocals() { return manyLocals(end); },
  staticBlock() {
    class Static {
      static { Static.value = end(); }
    }
    return Static.value;
  },
  emitter() { return emitter.emit('event'); },
  tryAndCatch() {
    try { throw new Error('caught'); } catch (error) {
      return (() => { try { return end(); } finally { scene = String(scene); } })();
    }
  },
  async asyncFunction() {
    async function inner() { return end(); }
    return await inner();
  },
  async afterAwait() {
    async function later() { await null; return end(); }
    return await later();
  },
  async asyncGenerator() {
    async function* values() { yield end(); }
    for await (const value of values()) { return value; }
  },
  promise() { return Promise.resolve(1).then(function fulfilled() { return end(); }); },
  timer() {
    return new Promise((resolve) => { setTimeout(function onTimer() { resolve(end()); }, 1); });
  },
  tick() {
    return new Promise((resolve) => { process.nextTick(function onTick() { resolve(end()); }); });
  },
};

const blocking = {
  program() { return end(runProgram); },
};

async function run(name, call) {
  const isSlow = /^(recursion|timer|staticBlock|privateMethods|async|after|promise|tick)/;
  const count = isSlow.test(name) ? Math.min(runs, 100) : runs;
  isMeasured = false;
  for (let index = 0; index < count; index++) {
    await call();
  }
  scene = name;
  isMeasured = true;
  await call();
  isMeasured = false;
}

function waitForLine() {
  fs.readSync(0, Buffer.alloc(1), 0, 1, null);
}

async function main() {
  fs.writeSync(1, 'ready\n');
  waitForLine();
  const all = mode === 'busy' ? scenes : { ...scenes, ...blocking };
  for (const [name, call] of Object.entries(all)) {
    await run(name, call);
  }
  fs.writeFileSync(truthPath, truth.join('\n') + '\n');
  fs.writeSync(1, 'done\n');
  waitForLine();
}

main();
