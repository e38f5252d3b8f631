"""Servers behind the gateway. They record requests, and respond as a test wants."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from shared.ports import reserve_port


@dataclass
class ReceivedRequest:
    """A request as it arrived."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    version: str = "HTTP/1.1"
    body: bytes = b""
    trailers: list[str] = field(default_factory=list)
    """Lines after the last chunk."""
    is_complete: bool = False
    """The complete body was received."""
    disconnected: threading.Event = field(default_factory=threading.Event)
    """Set when the client closed its connection before the end of the response."""

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)


class Reply:
    """Writes a response, chunk by chunk."""

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
        """Close the connection."""
        self._writer.transport.abort()


Responder = Callable[[ReceivedRequest, Reply], Awaitable[None]]


class Upstream:
    """A server on a reserved port: it keeps the port when it is closed and opened again."""

    def __init__(self, name: str, port: int, loop: asyncio.AbstractEventLoop) -> None:
        self.name, self.port = name, port
        self.requests: list[ReceivedRequest] = []
        self.respond: Responder = self.echo
        self.respond_to_probe: Responder = self.respond_healthy
        self._loop = loop
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        self.open()

    async def echo(self, request: ReceivedRequest, reply: Reply) -> None:
        """Respond with the name of this upstream and the request."""
        await reply.json(
            {
                "endpoint": self.name,
                "method": request.method,
                "path": request.path,
                "headers": request.headers,
                "length": len(request.body),
                "sha256": sha256(request.body).hexdigest(),
            }
        )

    async def respond_healthy(self, request: ReceivedRequest, reply: Reply) -> None:
        await reply.json("success")

    def open(self) -> None:
        async def serve() -> None:
            self._server = await asyncio.start_server(self._converse, "127.0.0.1", self.port, limit=2**20)

        self.run(serve())

    def restore(self) -> None:
        """Respond as at the start, and listen again if it was closed."""
        self.respond = self.echo
        if not self._server or not self._server.is_serving():
            self.open()

    def close(self) -> None:
        """Stop listening and abort all connections."""

        async def stop() -> None:
            assert self._server
            # First accept no more, then finish what was accepted: asyncio loses a connection that it accepts while the
            # server closes. After a few steps of the loop it is in `_connections`.
            for listener in self._server.sockets:
                self._loop.remove_reader(listener.fileno())
            for _ in range(10):
                await asyncio.sleep(0)
            self._server.close()
            exchanges = dict(self._connections)
            for writer, exchange in exchanges.items():
                writer.transport.abort()
                exchange.cancel()
            if exchanges:
                await asyncio.wait(exchanges.values())

        self.run(stop())

    def run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(300)

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
        request = ReceivedRequest(method, path, headers, version)
        if path == "/-/healthz":
            await self.respond_to_probe(request, Reply(writer))
            return True
        self.requests.append(request)
        if request.header("expect"):
            await Reply(writer).raw(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            request.body = await _body(reader, request)
        except (asyncio.IncompleteReadError, ConnectionError):
            request.disconnected.set()
            raise
        request.is_complete = True
        watch = asyncio.ensure_future(_end(reader, request))
        try:
            await self.respond(request, Reply(writer))
        except ConnectionError:
            request.disconnected.set()
        finally:
            watch.cancel()
            await asyncio.wait([watch])
        return not writer.transport.is_closing() and not request.disconnected.is_set()


class Gate:
    """Lets a test release a response."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._event = asyncio.Event()

    def open(self) -> None:
        self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self) -> None:
        await self._event.wait()


async def _body(reader: asyncio.StreamReader, request: ReceivedRequest) -> bytes:
    if request.header("transfer-encoding") != "chunked":
        return await reader.readexactly(int(request.header("content-length") or 0))
    body = bytearray()
    while True:
        size = int((await reader.readline()).split(b";")[0], 16)
        if not size:
            while line := (await reader.readline()).strip():
                request.trailers.append(line.decode("latin-1"))
            return bytes(body)
        body += await reader.readexactly(size)
        await reader.readexactly(2)


async def _end(reader: asyncio.StreamReader, request: ReceivedRequest) -> None:
    """Detect that the client has disconnected. The gateway does not pipeline, so any other byte is an error."""
    try:
        sent = await reader.read(1)
    except ConnectionError:
        sent = b""
    if not sent:
        request.disconnected.set()


@contextmanager
def start_upstreams(*names: str) -> Iterator[list[Upstream]]:
    """Start upstreams with these names in a thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    with ExitStack() as reserved:
        opened = [Upstream(name, reserved.enter_context(reserve_port()), loop) for name in names]
        try:
            yield opened
        finally:
            for upstream in opened:
                upstream.close()
            loop.call_soon_threadsafe(loop.stop)
            thread.join(300)
            loop.close()
