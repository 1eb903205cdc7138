// JIT-compiled code that computes, called from other such code and from the interpreter. Timers let
// the program sleep, and its thread pool reads files.
'use strict';

const fs = require('fs');

function fibonacci(n) {
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

function sortNumbers(count) {
	const numbers = [];
	for (let n = 0; n < count; n++)
		numbers.push((n * 7919) % 10007);
	return numbers.sort((left, right) => left - right)[0];
}

function compute() {
	let sum = fibonacci(22) + sortNumbers(2000);
	sum += JSON.stringify(JSON.parse('{"a":[1,2,3],"b":"text"}')).length;
	sum += 'some words to look through'.replace(/o(.)/g, (all) => all + '!').length;
	return sum;
}

function round() {
	const end = Date.now() + 20;
	while (Date.now() < end)
		compute();
	fs.readFile(__filename, () => setTimeout(round, 3));
}

for (let n = 0; n < 50; n++)
	compute();
console.log('ready');
round();
