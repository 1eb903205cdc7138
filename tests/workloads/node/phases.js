// A thread that computes and waits in functions of its own, and measures these times.
//
//     node phases.js SECONDS
//
// It does so between the test's line and "done". The program prints for each function the CPU time
// ("on-") and the time off the CPU ("off-") in ns.
'use strict';

const fs = require('node:fs');
const crypto = require('node:crypto');

const word = new Int32Array(new SharedArrayBuffer(4));
const numbers = Array.from({ length: 2000 }, (_, i) => (i * 7919) % 10007);
const bytes = Buffer.alloc(1 << 20, 'x');
const spent = new Map();

function loop() {
  let total = 0;
  for (let i = 0; i < 5000000; i++) total = (total * 31 + i) | 0;
  return total;
}

function sort() {
  for (let i = 0; i < 10; i++) numbers.slice().sort((one, other) => one - other);
}

function checksum() {
  crypto.createHash('sha1').update(bytes).digest();
}

function doze() {
  Atomics.wait(word, 0, 0, 20);
}

// CPU time of the process. The kernel reads that of the thread from its last tick only.
function cpuNs() {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1000;
}

function measure(body) {
  const cpu = cpuNs();
  const began = process.hrtime.bigint();
  body();
  const elapsed = Number(process.hrtime.bigint() - began);
  const on = cpuNs() - cpu;
  const sums = spent.get(body.name) ?? [0, 0];
  spent.set(body.name, [sums[0] + on, sums[1] + elapsed - on]);
}

function main() {
  for (let i = 0; i < 50; i++) {
    loop();
    sort();
    checksum();
  }
  process.stdout.write('ready\n');
  fs.readSync(0, Buffer.alloc(1));
  const end = Date.now() + Number(process.argv[2]) * 1000;
  while (Date.now() < end) {
    for (const body of [loop, sort, checksum, doze]) measure(body);
  }
  for (const [name, [on, off]] of spent) {
    process.stdout.write(`on-${name} ${on} off-${name} ${Math.max(0, off)}\n`);
  }
  process.stdout.write('done\n');
  fs.readSync(0, Buffer.alloc(1));
}

main();
