"""Memory of requests that wait for their response, at a gateway of its own whose upstream does not answer.

Run as `python -m gateway.waiting COUNT...`: the upstream. It prints its two ports, and a line when COUNT requests wait.
"""

import asyncio
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from gateway.contenders import KEY, Contender, start_gateway
from gateway.cores import pin_to
from gateway.plan import TYPICAL
from rayhelm.processes import create_run_id, stop_run

__all__ = ["KIB", "measure"]

KIB = 2**10
FIRST, ALL = 100, 600
"""The first requests take memory that later ones use again, so they are not counted."""


@dataclass(frozen=True)
class Upstream:
    ports: tuple[int, int]


def measure(home: Path, cores: set[int], load_cores: set[int], taken: set[int]) -> float:
    """Return the KiB that one more waiting request takes, with the chart's defaults."""
    command = [sys.executable, "-m", "gateway.waiting", str(FIRST), str(ALL)]
    run = create_run_id()
    with ExitStack() as stack:
        stack.callback(stop_run, run)
        with pin_to(load_cores):
            server = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        stack.callback(server.terminate)
        assert server.stdout
        first, second = server.stdout.readline().split()
        upstream = Upstream((int(first), int(second)))
        gateway = start_gateway("waiting", {}, {}, upstream, run, home / "waiting", cores, taken)
        send(gateway, FIRST, stack)
        server.stdout.readline()
        before = gateway.memory()
        send(gateway, ALL - FIRST, stack)
        server.stdout.readline()
        taken_mib = gateway.memory() - before
    return taken_mib * KIB / (ALL - FIRST)


def send(gateway: Contender, count: int, stack: ExitStack) -> None:
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {KEY}\r\nContent-Length: {len(TYPICAL)}\r\n\r\n"
    for _ in range(count):
        connection = stack.enter_context(socket.create_connection(("127.0.0.1", gateway.port)))
        connection.sendall(head.encode() + TYPICAL)


async def serve(marks: set[int]) -> None:
    waiting = 0

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal waiting
        line = await reader.readline()
        if line.startswith(b"GET "):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            writer.close()
            return
        waiting += line.startswith(b"POST ")
        if waiting in marks:
            print(waiting, flush=True)
        with suppress(ConnectionError):
            while await reader.read(65_536):
                pass
        writer.close()

    servers = [await asyncio.start_server(respond, "127.0.0.1", 0, backlog=1000) for _ in range(2)]
    print(*(server.sockets[0].getsockname()[1] for server in servers), flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(serve({int(mark) for mark in sys.argv[1:]}))
