// Many short sleeps below nested calls. Each call is of another function.
//
//     node deep.js FUNCTIONS
//
// The program prints "ready". It returns from all functions between two sleeps, so that V8 compiles
// them.
'use strict';

const word = new Int32Array(new SharedArrayBuffer(4));
const functions = Number(process.argv[2]);
let text = '';
for (let i = 1; i < functions; i++) {
  text += `function f${i}() { f${i + 1}(); }\n`;
}
text += `function f${functions}() { Atomics.wait(word, 0, 0, 0.02); }\nreturn f1;`;
const first = new Function('word', text)(word);
console.log('ready');
for (;;) {
  first();
}
