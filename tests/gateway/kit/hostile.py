"""Bytes that no decent client sends, what comes back, and whether the gateway stands as before."""

import io
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import cast

import psutil

from gateway.kit.door import Door
from gateway.kit.raw import Answer, Line, request
from gateway.kit.site import Asked, Site

LAST = request("/v1/models", headers=[("Connection", "close"), ("X-Request-Id", "last")])
"""Asked after the hostile bytes on the same connection, which ends with it at the latest."""


@dataclass(frozen=True)
class Talk:
    """All that came of some bytes."""

    answers: list[Answer]
    """Without that to `LAST`."""
    in_step: bool
    """The gateway took `LAST` for a request of its own; otherwise it closed the connection before."""
    asked: list[Asked]
    """What arrived upstream."""

    @property
    def statuses(self) -> list[int]:
        return [answer.status for answer in self.answers]


def talk(door: Door, site: Site, data: bytes) -> Talk:
    """Sends bytes as they are, and then asks twice for something ordinary: on the same connection, and on another.

    The second goes up on the connection that the site already has: what was left there of the bytes would spoil it."""
    before = len(site.asked)
    answers = served_as(door, data + LAST)
    in_step = bool(answers) and answers[-1].headers.get("x-request-id") == "last"
    follows = door.chat(headers=[("X-Request-Id", "follows")])
    assert (follows.status, follows.headers["x-request-id"]) == (200, "follows")
    *asked, last = site.asked[before:]
    assert last.header("x-request-id") == "follows"
    return Talk(answers[:-1] if in_step else answers, in_step, asked)


def served_as(door: Door, data: bytes) -> list[Answer]:
    """Every answer until the gateway closes."""
    with Line(door.port) as line:
        line.send(data)
        return list(_answers(line.take_all()))


@contextmanager
def unshaken(door: Door, megabytes: int = 200) -> Iterator[None]:
    """The process is the same afterwards, answers, said nothing of a failure, and grew by no more than that."""
    process = psutil.Process(door.process.pid)
    begun, before = process.create_time(), process.memory_info().rss
    yield
    assert process.is_running()
    assert process.create_time() == begun
    assert door.chat().status == 200
    assert process.memory_info().rss < before + megabytes * 2**20
    for word in ("[ALERT]", "runtime error", "Lua", "BUG", "panic"):
        assert word not in door.said


class _Said(io.BytesIO):
    """Takes the place of a socket, and is not closed with an answer."""

    def makefile(self, *_: object) -> "_Said":
        return self

    def close(self) -> None:
        pass


def _answers(said: bytes) -> Iterator[Answer]:
    stream = _Said(said)
    while stream.tell() < len(said):
        response = HTTPResponse(cast(socket.socket, stream))
        try:
            response.begin()
        except HTTPException as error:
            raise AssertionError(f"no answer in HTTP: {said[stream.tell() :][:200]!r}") from error
        headers = {name.lower(): value for name, value in response.getheaders()}
        yield Answer(response.status, headers, response.read())
