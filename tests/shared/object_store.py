"""A real S3-compatible server on loopback, which checks signatures, and a proxy that interrupts connections to it."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from rayhelm.processes import Process, create_run_id, start, stop_run, wait_until
from shared.built import built_program
from shared.ports import reserve_port

__all__ = ["KEYS", "Proxy", "serve_store", "upload", "upload_model", "wait_until_listening"]

KEYS = {"AWS_ACCESS_KEY_ID": "reader", "AWS_SECRET_ACCESS_KEY": "not-a-real-key"}


@contextmanager
def serve_store(home: Path) -> Iterator[int]:
    """Yield the port of a server with the credentials `KEYS`. Skips the test where it is not built."""
    server = built_program("s3")
    run = create_run_id()
    with reserve_port() as port:
        try:
            process = start([str(server), f"127.0.0.1:{port}", *KEYS.values()], run=run, log=home / "log")
            wait_until_listening(port, process)
            yield port
        finally:
            stop_run(run)


def wait_until_listening(port: int, process: Process) -> None:
    """Wait until a server accepts connections. Raises RayhelmError if its process ends."""
    wait_until(lambda: _listens(port), what="the object store", timeout=300, needs=[process])


def _listens(port: int) -> bool | None:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0 or None


def upload_model(store: Any, prefix: str, files: dict[str, bytes]) -> str:
    """Upload files and their `SHA256SUMS`; return the sha256 of it."""
    lines = "".join(f"{sha256(content).hexdigest()}  ./{name}\n" for name, content in files.items()).encode()
    for name, content in {**files, "SHA256SUMS": lines}.items():
        upload(store, f"{prefix}/{name}", content)
    return sha256(lines).hexdigest()


def upload(store: Any, path: str, content: bytes) -> None:
    with store.open_output_stream(path) as file:
        file.write(content)


class Proxy:
    """Connections to a server. `allowance` is how many bytes of responses each further connection may bring, and
    `ranges` the first byte of each request with a range, by path."""

    def __init__(self, upstream: int) -> None:
        self.allowance: list[int] = []
        self.ranges: list[tuple[str, int]] = []
        self._upstream = upstream
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                allowed = self.allowance.pop(0) if self.allowance else None
                server = socket.create_connection(("127.0.0.1", self._upstream))
                threading.Thread(target=self._send, args=(client, server), daemon=True).start()
                threading.Thread(target=self._answer, args=(server, client, allowed), daemon=True).start()

    def _send(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while block := client.recv(65536):
                found = re.search(rb"GET (\S+) .*?\r\nrange: bytes=(\d+)-", block, re.IGNORECASE | re.DOTALL)
                if found:
                    self.ranges.append((found[1].decode().partition("?")[0], int(found[2])))
                server.sendall(block)
        _close(server)

    def _answer(self, server: socket.socket, client: socket.socket, allowed: int | None) -> None:
        with suppress(OSError):
            while block := server.recv(65536):
                if allowed is not None and (allowed := allowed - len(block)) < 0:
                    break
                client.sendall(block)
        _close(client)
        _close(server)


def _close(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
