"""Servers behind the gateway: each says what it was asked, and answers as the test wants."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any


@dataclass
class Asked:
    """A request as it arrived."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    version: str = "HTTP/1.1"
    body: bytes = b""
    trailers: list[str] = field(default_factory=list)
    """Lines after the last chunk."""
    whole: bool = False
    """The body arrived to its end."""
    gone: threading.Event = field(default_factory=threading.Event)
    """Set when the caller closed its connection before the answer ended."""

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)


class Reply:
    """The way back, chunk by chunk."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def start(self, status: int = 200, **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} Whatever", "transfer-encoding: chunked"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.raw("\r\n".join([*lines, "", ""]).encode())

    async def send(self, data: bytes) -> None:
        await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def end(self) -> None:
        await self.raw(b"0\r\n\r\n")

    async def raw(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def json(self, content: Any, status: int = 200) -> None:
        await self.start(status, content_type="application/json")
        await self.send(json.dumps(content).encode())
        await self.end()

    def drop(self) -> None:
        """Ends the connection, whatever was said so far."""
        self._writer.transport.abort()


Answers = Callable[[Asked, Reply], Awaitable[None]]


class Site:
    """One server on a port of its own, which stays the same when it is closed and opened again."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self.name, self.port = name, 0
        self.asked: list[Asked] = []
        self.answers: Answers = self.echo
        self.probe: Answers = self.well
        self._loop = loop
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        self.open()

    async def echo(self, asked: Asked, reply: Reply) -> None:
        """Says who it is and what it was asked."""
        await reply.json(
            {
                "site": self.name,
                "method": asked.method,
                "path": asked.path,
                "headers": asked.headers,
                "length": len(asked.body),
                "sha256": sha256(asked.body).hexdigest(),
            }
        )

    async def well(self, asked: Asked, reply: Reply) -> None:
        await reply.json("success")

    def open(self) -> None:
        async def serve() -> None:
            self._server = await asyncio.start_server(self._converse, "127.0.0.1", self.port, limit=2**20)

        self.run(serve())
        assert self._server
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Nobody listens any more, and connections break."""

        async def stop() -> None:
            assert self._server
            self._server.close()
            talks = dict(self._connections)
            for writer, talk in talks.items():
                writer.transport.abort()
                talk.cancel()
            if talks:
                await asyncio.wait(talks.values())

        self.run(stop())

    def run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def gate(self) -> "Gate":
        return Gate(self._loop)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._connections[writer] = task
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._connections.pop(writer)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, version = head[0].split(" ", 2)
        headers = [(key.lower(), value.strip()) for key, _, value in (line.partition(":") for line in head[1:-2])]
        asked = Asked(method, path, headers, version)
        if path == "/-/healthz":
            await self.probe(asked, Reply(writer))
            return True
        self.asked.append(asked)
        if asked.header("expect"):
            await Reply(writer).raw(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            asked.body = await _body(reader, asked)
        except (asyncio.IncompleteReadError, ConnectionError):
            asked.gone.set()
            raise
        asked.whole = True
        watch = asyncio.ensure_future(_end(reader, asked))
        try:
            await self.answers(asked, Reply(writer))
        except ConnectionError:
            asked.gone.set()
        finally:
            watch.cancel()
            await asyncio.wait([watch])
        return not writer.transport.is_closing() and not asked.gone.is_set()


class Gate:
    """Something that a site waits for and a test opens."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._event = asyncio.Event()

    def open(self) -> None:
        self._loop.call_soon_threadsafe(self._event.set)

    async def passed(self) -> None:
        await self._event.wait()


async def _body(reader: asyncio.StreamReader, asked: Asked) -> bytes:
    if asked.header("transfer-encoding") != "chunked":
        return await reader.readexactly(int(asked.header("content-length") or 0))
    body = bytearray()
    while True:
        size = int((await reader.readline()).split(b";")[0], 16)
        if not size:
            while line := (await reader.readline()).strip():
                asked.trailers.append(line.decode("latin-1"))
            return bytes(body)
        body += await reader.readexactly(size)
        await reader.readexactly(2)


async def _end(reader: asyncio.StreamReader, asked: Asked) -> None:
    """Notices that the caller has gone; the gateway never sends a second request before the first is answered."""
    try:
        sent = await reader.read(1)
    except ConnectionError:
        sent = b""
    if not sent:
        asked.gone.set()


@contextmanager
def sites(*names: str) -> Iterator[list[Site]]:
    """Sites of these names, which run beside the test."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    opened = [Site(name, loop) for name in names]
    try:
        yield opened
    finally:
        for site in opened:
            site.close()
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
