"""Stream tokens at a constant rate; the text of each is the time when it was sent, in ns.

python tokens.py PORT TOKENS PAUSE
"""

import asyncio
import sys
import time

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
EVENT = (
    'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"llama",'
    '"choices":[{"index":0,"delta":{"content":"%d"},"finish_reason":%s}]}\n\n'
)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tokens: int, pause: float) -> None:
    loop = asyncio.get_running_loop()
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = head.split(b"content-length:")[1].split(b"\r\n")[0]
            await reader.readexactly(int(length))
            begun = loop.time()
            writer.write(HEAD)
            for number in range(tokens):
                await asyncio.sleep(begun + number * pause - loop.time())
                end = '"stop"' if number == tokens - 1 else "null"
                writer.write(chunk((EVENT % (time.monotonic_ns(), end)).encode()))
            writer.write(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main(port: int, tokens: int, pause: float) -> None:
    server = await asyncio.start_server(lambda r, w: converse(r, w, tokens, pause), "127.0.0.1", port, backlog=1000)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
