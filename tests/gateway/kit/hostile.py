"""Sends invalid requests and checks the responses, what upstreams received, and that the gateway is unaffected."""

import io
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import cast

import psutil

from gateway.kit.connection import Connection, Response, build_request
from gateway.kit.process import GatewayProcess, find_haproxy_version
from gateway.kit.upstream import ReceivedRequest, Upstream

LAST = build_request("/v1/models", headers=[("Connection", "close"), ("X-Request-Id", "last")])
"""Sent after the invalid bytes on the same connection; it closes the connection."""


@dataclass(frozen=True)
class Exchange:
    """What some bytes led to."""

    responses: list[Response]
    """Responses, without that to `LAST`."""
    in_sync: bool
    """The gateway read `LAST` as a request of its own. Otherwise it closed the connection before."""
    requests: list[ReceivedRequest]
    """Requests that the upstream received."""

    @property
    def statuses(self) -> list[int]:
        return [response.status for response in self.responses]


def exchange(gateway: GatewayProcess, upstream: Upstream, data: bytes) -> Exchange:
    """Send raw bytes, then a valid request on the same connection, and one on another connection.

    The second one uses the gateway's existing connection to the upstream, so remaining bytes would break it.
    """
    before = len(upstream.requests)
    responses = collect_responses(gateway, data + LAST)
    in_sync = bool(responses) and responses[-1].headers.get("x-request-id") == "last"
    follows = gateway.chat(headers=[("X-Request-Id", "follows")])
    assert (follows.status, follows.headers["x-request-id"]) == (200, "follows")
    *requests, last = upstream.requests[before:]
    assert last.header("x-request-id") == "follows"
    return Exchange(responses[:-1] if in_sync else responses, in_sync, requests)


def collect_responses(gateway: GatewayProcess, data: bytes) -> list[Response]:
    """Send raw bytes and collect all responses until the gateway closes."""
    with Connection(gateway.port) as connection:
        connection.send(data)
        return list(_parse(connection.receive_all()))


def assert_malformed(found: Exchange, *statuses: int) -> None:
    """Assert that HAProxy refused the request as malformed, with one of these statuses, and closed the connection."""
    assert found.statuses in malformed(*statuses)
    assert (found.in_sync, found.requests) == (False, [])


def malformed(*statuses: int) -> list[list[int]]:
    """Return possible statuses of a malformed request.

    3.2.26 and 3.4.7 close the connection without a response if a body follows the invalid headers.
    """
    possible = [[status] for status in statuses or (400,)]
    return [*possible, []] if find_haproxy_version() >= (3, 2) else possible


@contextmanager
def assert_unaffected(gateway: GatewayProcess, megabytes: int = 200) -> Iterator[None]:
    """Assert that the process still runs, responds, logged no failure, and did not grow by more than `megabytes`."""
    process = psutil.Process(gateway.process.pid)
    begun, before = process.create_time(), process.memory_info().rss
    yield
    assert process.is_running()
    assert process.create_time() == begun
    assert gateway.chat().status == 200
    assert process.memory_info().rss < before + megabytes * 2**20
    for word in ("[ALERT]", "runtime error", "Lua", "BUG", "panic"):
        assert word not in gateway.output


class _Stream(io.BytesIO):
    """Stands for a socket; it is not closed with a response."""

    def makefile(self, *_: object) -> "_Stream":
        return self

    def close(self) -> None:
        pass


def _parse(data: bytes) -> Iterator[Response]:
    stream = _Stream(data)
    while stream.tell() < len(data):
        response = HTTPResponse(cast(socket.socket, stream))
        try:
            response.begin()
        except HTTPException as error:
            raise AssertionError(f"not an HTTP response: {data[stream.tell() :][:200]!r}") from error
        headers = {name.lower(): value for name, value in response.getheaders()}
        yield Response(response.status, headers, response.read())
