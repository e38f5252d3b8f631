"""A client's connection, byte by byte where a test wants it so."""

import json
import select
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from http.client import HTTPResponse
from types import TracebackType
from typing import Any, Self

PATIENCE = 60.0


@dataclass(frozen=True)
class Answer:
    """A whole answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        """The error in OpenAI's shape, which has to be that and nothing else."""
        assert self.headers["content-type"] == "application/json"
        content = self.json()
        assert list(content) == ["error"]
        assert set(content["error"]) == {"message", "type", "param", "code"}
        return content["error"]

    @property
    def site(self) -> str:
        """Who answered."""
        assert self.status == 200, (self.status, self.body)
        return str(self.json()["site"])


class Line:
    """A TCP connection to the gateway."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Sends as much as the other side takes: it may answer, and close, before it has read all."""
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return

    def take(self, size: int) -> bytes:
        """The next bytes, as they are."""
        found = b""
        while len(found) < size and (more := self._socket.recv(size - len(found))):
            found += more
        return found

    def says_more(self, seconds: float) -> bool:
        """Something came, or the end, within that time."""
        return bool(select.select([self._socket], [], [], seconds)[0])

    def reset(self) -> None:
        """Ends without a farewell, as when a computer is switched off."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def take_all(self) -> bytes:
        """Everything until the other side closes."""
        found = bytearray()
        try:
            while more := self._socket.recv(65_536):
                found += more
        except ConnectionResetError:
            pass
        return bytes(found)

    def begin(self, method: str = "GET") -> HTTPResponse:
        """The next answer, read as far as its headers."""
        response = HTTPResponse(self._socket, method=method)
        response.begin()
        return response

    def answer(self, method: str = "GET") -> Answer:
        """The next answer, whole."""
        with self.begin(method) as response:
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, headers, response.read())

    def ask(
        self,
        path: str,
        content: object = None,
        *,
        key: str | None = "acme-key",
        method: str = "",
        headers: Iterable[tuple[str, str]] = (),
    ) -> Answer:
        """Asks, and takes the whole answer. `content` is bytes, or something to be written as JSON."""
        method = method or ("GET" if content is None else "POST")
        self.send(request(path, content, key=key, method=method, headers=headers))
        return self.answer(method)

    @property
    def is_closed(self) -> bool:
        """The other side has nothing more to say."""
        try:
            return not self._socket.recv(1)
        except ConnectionResetError:
            return True


def request(
    path: str,
    content: object = None,
    *,
    key: str | None = "acme-key",
    method: str = "",
    headers: Iterable[tuple[str, str]] = (),
) -> bytes:
    """The bytes of a request."""
    body = content if isinstance(content, bytes) else b"" if content is None else json.dumps(content).encode()
    lines = [f"{method or ('GET' if content is None else 'POST')} {path} HTTP/1.1", "Host: gateway.example"]
    given = list(headers)
    if key is not None:
        lines.append(f"Authorization: Bearer {key}")
    if content is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in given]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
