// HTTP server in node with a small answer to each request. It prints "port" with its port on the
// loopback device, and "ready".
'use strict';

const server = require('http').createServer((request, response) => response.end('Hello, world!\n'));

server.listen(0, '127.0.0.1', () => {
	console.log(`port ${server.address().port}`);
	console.log('ready');
});
