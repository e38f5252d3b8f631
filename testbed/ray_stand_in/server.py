"""HTTP/1.1 server with keep-alive connections, and absolute URLs as for a proxy."""

import select
import socket
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from testbed.ray_stand_in.exchange import Answer, NoAnswer, Request

__all__ = ["Server"]

LARGEST = 16 * 2**20
"""Maximum size of a body, bytes. A RayService has at most 1.5 MiB, the limit of etcd."""
_GLANCE = 0.1
"""Seconds between two checks whether a request without an answer must continue to wait."""


class Server(ThreadingHTTPServer):
    """A server on loopback; `port` 0 is a free one. Raises OSError for a port in use."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, answer: Callable[[Request], Answer | NoAnswer]) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.answer = answer
        self._said: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def log(self, request: Request, status: int, said: bytes) -> None:
        """Log every PUT and DELETE, and GETs with a new answer, because the operator sends them every two seconds."""
        place = (request.method, request.target)
        with self._lock:
            before = self._said.get(place)
            self._said[place] = status
        if request.method == "GET" and (before == status or (before is None and status == 200)):
            return
        reason = said.decode(errors="replace").partition("\n")[0] if status != 200 else ""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        print(
            f"{now} {request.method} {request.target} {status or 'no answer'} {reason}".rstrip(),
            file=sys.stderr,
            flush=True,
        )


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # One packet for head and body.
    server: Server

    def _exchange(self) -> None:
        body = self._read_body()
        if body is None:
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, body)
        answer = self.server.answer(request)
        if isinstance(answer, NoAnswer):
            self.server.log(request, 0, b"")
            self._hang(answer)
            return
        self.server.log(request, answer.status, answer.body)
        self._send(answer)

    do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = _exchange

    def _read_body(self) -> bytes | None:
        try:
            length = int(self.headers.get("Content-Length", 0))
        except ValueError:
            length = -1
        if "Transfer-Encoding" in self.headers or not 0 <= length <= LARGEST:
            self.close_connection = True
            self._send(Answer(411, b"a body needs its length, of 16 MiB at most"))
            return None
        return self.rfile.read(length)

    def _send(self, answer: Answer) -> None:
        self.send_response_only(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer.body)

    def _hang(self, answer: NoAnswer) -> None:
        self.close_connection = True
        while answer.goes_on():
            readable, _, _ = select.select([self.connection], [], [], _GLANCE)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                return
            if readable:
                time.sleep(_GLANCE)

    def log_message(self, format: str, *args: object) -> None:
        """Ignore messages of the base class: requests are logged with their answers."""
        print(self.address_string(), format % args, file=sys.stderr, flush=True)
