"""A DNS server for tests."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

A, ANSWER, SERVER_FAILURE, NO_SUCH_NAME, REFUSED = 1, 0x8180, 0x8182, 0x8183, 0x8185


class Dns:
    """Serves `names` at `address`. A test can change them while it runs."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.silent = False
        self.failure = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"

    def serve(self) -> None:
        while True:
            try:
                query, client = self._socket.recvfrom(4096)
            except OSError:
                return
            if not query:
                return
            if not self.silent:
                self._socket.sendto(self._answer(query), client)

    def close(self) -> None:
        self._socket.sendto(b"", self._socket.getsockname())

    def _answer(self, query: bytes) -> bytes:
        labels, at = [], 12
        while size := query[at]:
            labels.append(query[at + 1 : at + 1 + size].decode())
            at += size + 1
        question = query[12 : at + 5]
        kind = struct.unpack("!H", query[at + 1 : at + 3])[0]
        address = None if self.failure else self.names.get(".".join(labels))
        record = b"\xc0\x0c" + struct.pack("!HHIH", A, 1, 1, 4) + socket.inet_aton(address or "0.0.0.0")
        found = address is not None and kind == A
        flags = ANSWER if address else self.failure or NO_SUCH_NAME
        return query[:2] + struct.pack("!HHHHH", flags, 1, int(found), 0, 0) + question + (record if found else b"")


@contextmanager
def dns() -> Iterator[Dns]:
    server = Dns()
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join(10)
        server._socket.close()
