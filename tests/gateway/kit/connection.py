"""A client connection that can send arbitrary bytes."""

import json
import select
import socket
import ssl
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from http.client import HTTPResponse
from types import TracebackType
from typing import Any, Self

PATIENCE = 300.0
"""Seconds that a client waits for the next bytes."""


@dataclass(frozen=True)
class Response:
    """A complete response."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        """The error of a body in OpenAI's shape, with the outer `type` of the Messages API; asserts this shape."""
        assert self.headers["content-type"] == "application/json"
        content = self.json()
        assert set(content) == {"type", "error"}
        assert content["type"] == "error"
        assert set(content["error"]) == {"message", "type", "param", "code"}
        return content["error"]

    @property
    def endpoint(self) -> str:
        """Name of the upstream that responded."""
        assert self.status == 200, (self.status, self.body)
        return str(self.json()["endpoint"])


class Connection:
    """A TCP connection to the gateway."""

    def __init__(
        self, port: int, patience: float = PATIENCE, source: str = "", tls: ssl.SSLContext | None = None
    ) -> None:
        """`source` is the client's address; 127.0.0.1 without it."""
        # Thousands of connections stay in TIME_WAIT. A socket that is bound first may not use their ports again.
        own = (source, 0) if source else None
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=patience, source_address=own)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self._socket = tls.wrap_socket(self._socket, server_hostname="gateway.example")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def certificate(self) -> bytes:
        """The certificate that the gateway showed, DER."""
        assert isinstance(self._socket, ssl.SSLSocket)
        found = self._socket.getpeercert(binary_form=True)
        assert found
        return found

    def close(self) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Send as much as the gateway reads: it may respond and close before it has read everything."""
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return

    def receive(self, size: int) -> bytes:
        """Receive the next `size` bytes, or fewer at the end."""
        found = b""
        while len(found) < size and (more := self._socket.recv(size - len(found))):
            found += more
        return found

    def has_data(self, seconds: float) -> bool:
        """Return whether data or the end of the connection arrives within `seconds`."""
        return bool(select.select([self._socket], [], [], seconds)[0])

    def reset(self) -> None:
        """Reset the connection."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def receive_all(self) -> bytes:
        """Receive everything until the gateway closes."""
        found = bytearray()
        try:
            while more := self._socket.recv(65_536):
                found += more
        except ConnectionResetError:
            pass
        return bytes(found)

    def begin_response(self, method: str = "GET") -> HTTPResponse:
        """Read the next response up to its headers."""
        response = HTTPResponse(self._socket, method=method)
        response.begin()
        return response

    def read_response(self, method: str = "GET") -> Response:
        """Read the next response completely."""
        with self.begin_response(method) as response:
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Response(response.status, headers, response.read())

    def request(
        self,
        path: str,
        content: object = None,
        *,
        key: str | None = "acme-key",
        method: str = "",
        headers: Iterable[tuple[str, str]] = (),
    ) -> Response:
        """Send a request and read its response. `content` is bytes, or a value to encode as JSON."""
        method = method or ("GET" if content is None else "POST")
        self.send(build_request(path, content, key=key, method=method, headers=headers))
        return self.read_response(method)

    @property
    def is_closed(self) -> bool:
        """The gateway closed the connection."""
        try:
            return not self._socket.recv(1)
        except ConnectionResetError:
            return True


def build_request(
    path: str,
    content: object = None,
    *,
    key: str | None = "acme-key",
    method: str = "",
    headers: Iterable[tuple[str, str]] = (),
) -> bytes:
    """Return the bytes of a request."""
    body = content if isinstance(content, bytes) else b"" if content is None else json.dumps(content).encode()
    lines = [f"{method or ('GET' if content is None else 'POST')} {path} HTTP/1.1", "Host: gateway.example"]
    given = list(headers)
    if key is not None:
        lines.append(f"Authorization: Bearer {key}")
    if content is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in given]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
