"""The middleware of Serve's proxies: complete streams are unchanged, interrupted ones end with an error."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from rayhelm.runtime.stream_errors import StreamErrorMiddleware

PATH = "/chat/v1/chat/completions"
SSE = b"text/event-stream; charset=utf-8"
CHUNK = b'data: {"choices": []}\n\n'
DONE = b"data: [DONE]\n\n"


def through(
    chunks: Sequence[bytes],
    *,
    path: str = PATH,
    content_type: bytes = SSE,
    status: int = 200,
    breaks: bool = False,
) -> list[dict[str, Any]]:
    """Return what a client receives from an application that sends these chunks and ends or breaks."""
    sent: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": [(b"Content-Type", content_type)]})
        for piece in chunks:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        if breaks:
            raise ConnectionError
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def receive() -> Any:
        raise AssertionError("receive is not called")

    async def send(message: Any) -> None:
        sent.append(dict(message))

    async def call() -> None:
        await StreamErrorMiddleware(app)({"type": "http", "path": path}, receive, send)

    if breaks:
        with pytest.raises(ConnectionError):
            asyncio.run(call())
    else:
        asyncio.run(call())
    return sent


def body(sent: list[dict[str, Any]]) -> bytes:
    return b"".join(message.get("body", b"") for message in sent)


def test_stream_without_done_ends_with_an_error() -> None:
    sent = through([CHUNK, CHUNK])
    assert body(sent).startswith(CHUNK * 2)
    *_, last = [event for event in body(sent).decode().split("\n\n") if event]
    error = json.loads(last.removeprefix("data: "))["error"]
    assert error["code"] == 500
    assert "the answer is incomplete" in error["message"]
    assert sent[-1]["more_body"] is False


@pytest.mark.parametrize(
    "chunks",
    [[CHUNK, DONE], [CHUNK + DONE], [CHUNK, DONE[:8], DONE[8:]], [CHUNK, DONE, b"\n"], [DONE.replace(b"\n", b"\r\n")]],
)
def test_complete_stream_is_unchanged_for_any_chunks(chunks: list[bytes]) -> None:
    assert body(through(chunks)) == b"".join(chunks)


def test_each_chunk_is_sent_immediately() -> None:
    sent = through([CHUNK, CHUNK, DONE])
    assert [message["body"] for message in sent[1:4]] == [CHUNK, CHUNK, DONE]


@pytest.mark.parametrize(
    "other",
    [{"path": "/ears/v1/audio/transcriptions"}, {"content_type": b"application/json"}, {"status": 500}],
)
def test_other_answers_are_unchanged(other: dict[str, Any]) -> None:
    assert body(through([CHUNK], **other)) == CHUNK


def test_broken_connection_stays_broken() -> None:
    assert body(through([CHUNK], breaks=True)) == CHUNK


def test_other_protocols_are_passed_on() -> None:
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    asyncio.run(StreamErrorMiddleware(app)({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert seen == ["lifespan"]
