"""Send a constant load to models: short requests and streams. Check each answer, and retry nothing.

`python load_client.py PLAN` runs in a pod of the cluster, as the clients of a fleet do. It waits until every target has
answered once. Then it sends requests until SIGTERM, finishes the requests in flight, and prints a line of JSON per
event, which `rayhelm.run.rehearsal.load` reads.
"""

import io
import json
import signal
import sys
import threading
import time
import wave
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

__all__ = ["LoadTarget", "RequestResult", "main"]

_INTERRUPTED = "interrupted"
TOKENS = 8
"""Enough for a stream of several chunks."""


@dataclass(frozen=True)
class LoadTarget:
    """A model and its address."""

    name: str
    """Name in reports."""
    url: str
    """URL before `/v1/...`."""
    model: str
    task: str = "chat"
    key: str = ""
    """API key; empty if none is needed."""
    tokens: int = TOKENS
    """Tokens of an answer that is text."""
    version: str = ""
    """Version to request; empty to let the gateway choose."""


@dataclass(frozen=True)
class RequestResult:
    """The result of one request."""

    started: float
    """Seconds since the epoch."""
    seconds: float
    """Seconds until the last byte or the error."""
    target: str
    kind: str
    """`short` or `stream`."""
    version: str
    """Version that answered, as the gateway reports it."""
    error: str
    """What is wrong with the answer; empty if it is correct."""
    interrupted: bool = False
    """A stream that had started; no other replica can continue it."""


def main(plan: Path) -> int:
    """Run the plan, a JSON file with targets, clients per target, pause, timeout and first_timeout (seconds)."""
    settings: dict[str, Any] = json.loads(plan.read_text())
    targets = [LoadTarget(**target) for target in settings["targets"]]
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    begin = time.monotonic()
    for target in targets:
        error = _wait_for_answer(target, begin + settings["first_timeout"], stopped)
        if error:
            _write({"unanswered": target.name, "error": error})
            return 1
        _write({"ready": target.name, "after": time.monotonic() - begin})
    threads = [
        threading.Thread(target=_send_requests, args=(target, number, settings, stopped))
        for target in targets
        for number in range(settings["clients"])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _write({"finished": time.time()})
    return 0


def _wait_for_answer(target: LoadTarget, deadline: float, stopped: threading.Event) -> str:
    """Wait for the first correct answer. Returns the error of the last one, empty if it was correct."""
    with _open_client(target, timeout=60) as client:
        while True:
            error, _ = _try_request(lambda: _REQUESTS[target.task](client, target))
            if not error or time.monotonic() > deadline or stopped.wait(1):
                return error


def _send_requests(target: LoadTarget, number: int, settings: Mapping[str, Any], stopped: threading.Event) -> None:
    """Send requests until `stopped`. Every second client of a chat model requests streams."""
    is_stream = target.task == "chat" and number % 2 == 1
    request = _request_stream if is_stream else _REQUESTS[target.task]
    kind = "stream" if is_stream else "short"
    with _open_client(target, timeout=settings["timeout"]) as client:
        while not stopped.wait(settings["pause"]):
            started, begin = time.time(), time.monotonic()
            error, version = _try_request(lambda: request(client, target))
            seconds = round(time.monotonic() - begin, 3)
            interrupted = error.startswith(_INTERRUPTED)
            _write(asdict(RequestResult(started, seconds, target.name, kind, version, error, interrupted)))


def _open_client(target: LoadTarget, *, timeout: float) -> httpx.Client:
    headers = {"Authorization": f"Bearer {target.key}"} if target.key else {}
    if target.version:
        headers["x-model-version"] = target.version
    return httpx.Client(base_url=target.url, headers=headers, timeout=timeout, trust_env=False)


def _try_request(send: Callable[[], tuple[str, str]]) -> tuple[str, str]:
    try:
        return send()
    except (
        httpx.HTTPError,
        LookupError,
        TypeError,
        ValueError,
        EOFError,
        wave.Error,
    ) as error:  # also an answer with another structure
        return repr(error)[:300], ""


def _request_chat(client: httpx.Client, target: LoadTarget) -> tuple[str, str]:
    """Return the error of the answer, and the version that gave it."""
    answer = client.post("/v1/chat/completions", json=_build_body(target))
    if error := _describe_status(answer):
        return error, _read_version(answer)
    tokens = answer.json()["usage"]["completion_tokens"]
    return "" if tokens == target.tokens else f"{tokens} tokens in place of {target.tokens}", _read_version(answer)


def _request_stream(client: httpx.Client, target: LoadTarget) -> tuple[str, str]:
    with client.stream("POST", "/v1/chat/completions", json={**_build_body(target), "stream": True}) as answer:
        if answer.status_code != 200:
            answer.read()
            return _describe_status(answer), _read_version(answer)
        body = b""
        try:
            for chunk in answer.iter_bytes():
                body += chunk
        except httpx.HTTPError as error:
            # A stream without data, or with a timeout, is not one that lost its replica.
            is_silent = not body or isinstance(error, httpx.TimeoutException)
            what = "no data" if is_silent else _INTERRUPTED
            return f"{what} after {len(_split_lines(body))} chunks: {error!r}"[:300], _read_version(answer)
    lines = _split_lines(body)
    chunks = [json.loads(line) for line in lines if line != "[DONE]"]
    if errors := [chunk["error"] for chunk in chunks if "error" in chunk]:
        return f"{_INTERRUPTED} after {len(chunks)} chunks: {errors[0]}"[:300], _read_version(answer)
    if not lines:
        return "an empty stream", _read_version(answer)
    if lines[-1] != "[DONE]":
        return f"{_INTERRUPTED} after {len(lines)} chunks, without an error", _read_version(answer)
    is_complete = any(choice["finish_reason"] for chunk in chunks for choice in chunk["choices"])
    return "" if is_complete else "a stream without finish_reason", _read_version(answer)


def _split_lines(body: bytes) -> list[str]:
    """Split at line feeds only: httpx also splits at Unicode line separators, which models generate."""
    return [line.removeprefix("data: ") for line in body.decode(errors="replace").split("\n") if line]


def _request_embedding(client: httpx.Client, target: LoadTarget) -> tuple[str, str]:
    answer = client.post("/v1/embeddings", json={"model": target.model, "input": "hello", "user": _create_user()})
    if error := _describe_status(answer):
        return error, _read_version(answer)
    (entry,) = answer.json()["data"]
    return "" if entry["embedding"] else "an empty embedding", _read_version(answer)


def _request_score(client: httpx.Client, target: LoadTarget) -> tuple[str, str]:
    body = {"model": target.model, "text_1": "hello", "text_2": "world"}
    answer = client.post("/v1/score", json={**body, "user": _create_user()})
    if error := _describe_status(answer):
        return error, _read_version(answer)
    (entry,) = answer.json()["data"]
    return "" if isinstance(entry["score"], float) else f"no score: {entry}", _read_version(answer)


def _request_transcript(client: httpx.Client, target: LoadTarget) -> tuple[str, str]:
    """Send a second of zeros. A gateway takes the model of an upload from the path."""
    sound = io.BytesIO()
    with wave.open(sound, "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(bytes(2 * 16000))
    path = f"{f'/{target.model}' if target.key else ''}/v1/audio/transcriptions"
    files = {"file": ("second.wav", sound.getvalue(), "audio/wav")}
    answer = client.post(path, data={"model": target.model, "language": "en"}, files=files)
    if error := _describe_status(answer):
        return error, _read_version(answer)
    text = answer.json()["text"]
    return "" if isinstance(text, str) else f"no text: {text}", _read_version(answer)


def _request_speech(client: httpx.Client, target: LoadTarget) -> tuple[str, str]:
    body = {"model": target.model, "input": "hello", "response_format": "wav"}
    answer = client.post("/v1/audio/speech", json=body)
    if error := _describe_status(answer):
        return error, _read_version(answer)
    with wave.open(io.BytesIO(answer.content)) as file:
        return "" if file.getnframes() else "no samples", _read_version(answer)


_REQUESTS: Mapping[str, Callable[[httpx.Client, LoadTarget], tuple[str, str]]] = {
    "chat": _request_chat,
    "embed": _request_embedding,
    "rerank": _request_score,
    "speak": _request_speech,
    "transcribe": _request_transcript,
}


def _build_body(target: LoadTarget) -> dict[str, Any]:
    messages = [{"role": "user", "content": "hi"}]
    content = {"messages": messages, "max_tokens": target.tokens, "ignore_eos": True}
    return {"model": target.model, **content, "user": _create_user()}


def _create_user() -> str:
    """Make the bodies differ: the gateway stops a body whose connections closed twice without a response."""
    return uuid4().hex


def _describe_status(answer: httpx.Response) -> str:
    return "" if answer.status_code == 200 else f"{answer.status_code} {answer.text[:200]}"


def _read_version(answer: httpx.Response) -> str:
    return str(answer.headers.get("x-model-version", ""))


def _write(event: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(event) + "\n")  # one write, so that threads do not mix lines
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
