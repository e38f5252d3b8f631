"""Streams through the middleware of Serve's proxies: whole ones untouched, broken ones with an error at their end."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from rayhelm.runtime.stream_errors import BrokenStreams

PATH = "/chat/v1/chat/completions"
SSE = b"text/event-stream; charset=utf-8"
PIECE = b'data: {"choices": []}\n\n'
DONE = b"data: [DONE]\n\n"


def through(
    pieces: Sequence[bytes],
    *,
    path: str = PATH,
    content_type: bytes = SSE,
    status: int = 200,
    breaks: bool = False,
) -> list[dict[str, Any]]:
    """What a client gets of an application that sends these pieces, and breaks off or ends its answer."""
    sent: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": [(b"Content-Type", content_type)]})
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        if breaks:
            raise ConnectionError
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def receive() -> Any:
        raise AssertionError("nobody asks")

    async def send(message: Any) -> None:
        sent.append(dict(message))

    async def call() -> None:
        await BrokenStreams(app)({"type": "http", "path": path}, receive, send)

    if breaks:
        with pytest.raises(ConnectionError):
            asyncio.run(call())
    else:
        asyncio.run(call())
    return sent


def body(sent: list[dict[str, Any]]) -> bytes:
    return b"".join(message.get("body", b"") for message in sent)


def test_a_stream_that_ends_without_its_last_line_ends_with_an_error() -> None:
    sent = through([PIECE, PIECE])
    assert body(sent).startswith(PIECE * 2)
    *_, last = [event for event in body(sent).decode().split("\n\n") if event]
    error = json.loads(last.removeprefix("data: "))["error"]
    assert error["code"] == 500
    assert "not the whole answer" in error["message"]
    assert sent[-1]["more_body"] is False


@pytest.mark.parametrize(
    "pieces",
    [[PIECE, DONE], [PIECE + DONE], [PIECE, DONE[:8], DONE[8:]], [PIECE, DONE, b"\n"], [DONE.replace(b"\n", b"\r\n")]],
)
def test_a_whole_stream_is_not_touched_however_it_is_cut(pieces: list[bytes]) -> None:
    assert body(through(pieces)) == b"".join(pieces)


def test_each_piece_goes_on_as_it_comes() -> None:
    sent = through([PIECE, PIECE, DONE])
    assert [message["body"] for message in sent[1:4]] == [PIECE, PIECE, DONE]


@pytest.mark.parametrize(
    "other",
    [{"path": "/ears/v1/audio/transcriptions"}, {"content_type": b"application/json"}, {"status": 500}],
)
def test_what_is_no_stream_of_completions_is_not_touched(other: dict[str, Any]) -> None:
    assert body(through([PIECE], **other)) == PIECE


def test_a_connection_that_breaks_is_left_to_break() -> None:
    assert body(through([PIECE], breaks=True)) == PIECE


def test_what_is_not_http_passes() -> None:
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    asyncio.run(BrokenStreams(app)({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert seen == ["lifespan"]
