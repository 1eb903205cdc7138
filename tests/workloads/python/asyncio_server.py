"""HTTP server in asyncio with a small answer to each request, over connections that stay open.

The program prints "port" with its port on the loopback device, and "ready".
"""

import asyncio

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\nHello, world!\n"


async def answer(reader, writer):
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(ANSWER)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print("port %d" % server.sockets[0].getsockname()[1])
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


asyncio.run(main())
