"""What callers make of answers: which are whole, which are wrong, and which broke off."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from rayhelm.errors import RayhelmError
from rayhelm.kube.kubectl import Kubectl
from rayhelm.rehearsal import load_client
from rayhelm.rehearsal.load import LoadGenerator
from rayhelm.rehearsal.load_client import LoadTarget, RequestResult

TARGET = LoadTarget(name="tiny", url="", model="tiny", tokens=8)


def piece(text: str = "a", finish: str = "") -> bytes:
    choice = {"delta": {"content": text}, "finish_reason": finish or None}
    return b"data: " + json.dumps({"choices": [choice]}, ensure_ascii=False).encode() + b"\n\n"


END = piece(finish="length")
DONE = b"data: [DONE]\n\n"
ERROR = b'data: {"error": {"message": "the replica is gone"}}\n\n'


@contextmanager
def check_reachable(body: bytes, *, status: int = 200, promised: int = 0) -> Iterator[LoadTarget]:
    """A model that gives this answer to everybody; `promised` are bytes that never come."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) + promised))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield replace(TARGET, url=f"http://127.0.0.1:{server.server_port}")
        server.shutdown()


def wrong(target: LoadTarget, kind: str) -> str:
    """What a caller finds wrong with the answer."""
    asks = load_client._stream if kind == "stream" else load_client._ANSWERS[kind]
    with load_client._client(target, patience=10) as client:
        said, _ = load_client._asked(lambda: asks(client, target))
    return said


def test_a_stream_with_its_end_is_whole() -> None:
    with check_reachable(piece() + END + DONE) as target:
        assert wrong(target, "stream") == ""


@pytest.mark.parametrize("odd", ["\x85", "\u2028", "\x1c", "\x0b"])
def test_what_unicode_calls_the_end_of_a_line_ends_none(odd: str) -> None:
    with check_reachable(piece(f"a{odd}b") + END + DONE) as target:
        assert wrong(target, "stream") == ""


@pytest.mark.parametrize(
    ("body", "promised", "said"),
    [
        (piece() + piece(), 0, "cut after 2 pieces, without a word"),
        (piece() + ERROR, 0, "cut after 2 pieces: {'message': 'the replica is gone'}"),
        (piece(), 1000, "cut after 1 pieces: RemoteProtocolError"),
        (piece("é")[:-12], 1000, "cut after 1 pieces: RemoteProtocolError"),
    ],
)
def test_a_stream_that_broke_off_is_cut(body: bytes, promised: int, said: str) -> None:
    with check_reachable(body, promised=promised) as target:
        assert wrong(target, "stream").startswith(said)


@pytest.mark.parametrize(("promised", "said"), [(0, "an empty stream"), (1000, "silent after 0 pieces")])
def test_a_stream_that_never_began_is_lost_and_not_cut(promised: int, said: str) -> None:
    with check_reachable(b"", promised=promised) as target:
        assert wrong(target, "stream").startswith(said)


def test_a_stream_that_gives_no_reason_for_its_end_is_wrong() -> None:
    with check_reachable(piece() + DONE) as target:
        assert wrong(target, "stream") == "a stream without an end"


@pytest.mark.parametrize("kind", ["chat", "stream", "embed", "rerank"])
def test_a_refusal_is_told_with_its_text(kind: str) -> None:
    with check_reachable(b"nobody is here", status=503) as target:
        assert wrong(target, kind) == "503 nobody is here"


@pytest.mark.parametrize("kind", ["chat", "embed", "rerank"])
@pytest.mark.parametrize("body", [b"{}", b"[]", b"<html>", b'{"usage": 1, "data": [{"score": 1}]}'])
def test_an_answer_of_another_shape_is_wrong(kind: str, body: bytes) -> None:
    with check_reachable(body) as target:
        assert wrong(target, kind)


def test_an_answer_of_another_length_is_wrong() -> None:
    with check_reachable(b'{"usage": {"completion_tokens": 3}}') as target:
        assert wrong(target, "chat") == "3 tokens in place of 8"


def test_a_connection_that_nobody_takes_is_wrong() -> None:
    with check_reachable(b"") as target:
        pass
    assert "ConnectError" in wrong(target, "chat")


def test_a_log_whose_beginning_is_gone_is_no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kubelet starts another file after ten MiB, and tells of the newest alone."""
    first = json.dumps({"first": "chat", "after": 1.0})
    seen = json.dumps(asdict(RequestResult(1.0, 0.5, "chat", "short", "stable", "")))
    said = LoadGenerator(Kubectl(Path("kubectl"), None), "callers")
    monkeypatch.setattr(said, "_said", lambda: f"{first}\n{seen}\n")
    assert len(said.read_result().answered) == 1
    monkeypatch.setattr(said, "_said", lambda: f"{seen[20:]}\n{seen}\n")
    with pytest.raises(RayhelmError, match="more than the log of their pod keeps"):
        said.read_result()
