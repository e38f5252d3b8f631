"""The load client: correct, wrong and interrupted answers."""

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
from rayhelm.facts.tasks import load_tasks
from rayhelm.live.cluster.kubectl import Kubectl
from rayhelm.run.rehearsal import load_client
from rayhelm.run.rehearsal.load import LoadGenerator
from rayhelm.run.rehearsal.load_client import LoadTarget, RequestResult
from shared.ports import reserve_port

TARGET = LoadTarget(name="tiny", url="", model="tiny", tokens=8)


def chunk(text: str = "a", finish: str = "") -> bytes:
    choice = {"delta": {"content": text}, "finish_reason": finish or None}
    return b"data: " + json.dumps({"choices": [choice]}, ensure_ascii=False).encode() + b"\n\n"


END = chunk(finish="length")
DONE = b"data: [DONE]\n\n"
ERROR = b'data: {"error": {"message": "the replica failed"}}\n\n'


@contextmanager
def check_reachable(body: bytes, *, status: int = 200, promised: int = 0) -> Iterator[LoadTarget]:
    """A model that gives this answer; `promised` is the number of announced bytes that are never sent."""

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


def find_error(target: LoadTarget, kind: str) -> str:
    """Return the error that the client finds."""
    request = load_client._request_stream if kind == "stream" else load_client._REQUESTS[kind]
    with load_client._open_client(target, timeout=60) as client:
        error, _ = load_client._try_request(lambda: request(client, target))
    return error


def test_complete_stream_has_no_error() -> None:
    with check_reachable(chunk() + END + DONE) as target:
        assert find_error(target, "stream") == ""


@pytest.mark.parametrize("odd", ["\x85", "\u2028", "\x1c", "\x0b"])
def test_unicode_line_separators_do_not_end_a_line(odd: str) -> None:
    with check_reachable(chunk(f"a{odd}b") + END + DONE) as target:
        assert find_error(target, "stream") == ""


@pytest.mark.parametrize(
    ("body", "promised", "error"),
    [
        (chunk() + chunk(), 0, "interrupted after 2 chunks, without an error"),
        (chunk() + ERROR, 0, "interrupted after 2 chunks: {'message': 'the replica failed'}"),
        (chunk(), 1000, "interrupted after 1 chunks: RemoteProtocolError"),
        (chunk("é")[:-12], 1000, "interrupted after 1 chunks: RemoteProtocolError"),
    ],
)
def test_stream_without_done_is_interrupted(body: bytes, promised: int, error: str) -> None:
    with check_reachable(body, promised=promised) as target:
        assert find_error(target, "stream").startswith(error)


@pytest.mark.parametrize(("promised", "error"), [(0, "an empty stream"), (1000, "no data after 0 chunks")])
def test_stream_without_data_is_failed_and_not_interrupted(promised: int, error: str) -> None:
    with check_reachable(b"", promised=promised) as target:
        assert find_error(target, "stream").startswith(error)


def test_stream_without_finish_reason_is_an_error() -> None:
    with check_reachable(chunk() + DONE) as target:
        assert find_error(target, "stream") == "a stream without finish_reason"


@pytest.mark.parametrize("kind", ["chat", "stream", "embed", "rerank", "speak", "transcribe"])
def test_error_has_status_and_text(kind: str) -> None:
    with check_reachable(b"no endpoint", status=503) as target:
        assert find_error(target, kind) == "503 no endpoint"


def test_every_task_with_paths_has_a_request() -> None:
    assert set(load_client._REQUESTS) == {name for name, task in load_tasks().items() if task.operations}


@pytest.mark.parametrize("kind", ["chat", "embed", "rerank", "speak", "transcribe"])
@pytest.mark.parametrize("body", [b"{}", b"[]", b"<html>", b'{"usage": 1, "data": [{"score": 1}]}'])
def test_answer_with_another_structure_is_an_error(kind: str, body: bytes) -> None:
    with check_reachable(body) as target:
        assert find_error(target, kind)


def test_answer_with_another_length_is_an_error() -> None:
    with check_reachable(b'{"usage": {"completion_tokens": 3}}') as target:
        assert find_error(target, "chat") == "3 tokens in place of 8"


def test_refused_connection_is_an_error() -> None:
    with reserve_port() as port:
        assert "ConnectError" in find_error(replace(TARGET, url=f"http://127.0.0.1:{port}"), "chat")


def test_log_without_its_beginning_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kubelet starts a new file after 10 MiB, and returns only the newest one."""
    first = json.dumps({"ready": "chat", "after": 1.0})
    seen = json.dumps(asdict(RequestResult(1.0, 0.5, "chat", "short", "stable", "")))
    generator = LoadGenerator(Kubectl(Path("kubectl"), None), "load")
    monkeypatch.setattr(generator, "_read_log", lambda: f"{first}\n{seen}\n")
    assert len(generator.read_result().answered) == 1
    monkeypatch.setattr(generator, "_read_log", lambda: f"{seen[20:]}\n{seen}\n")
    with pytest.raises(RayhelmError, match="its beginning is lost"):
        generator.read_result()
