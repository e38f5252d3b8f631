"""Steady load on models: short requests and streams, each answer looked at, nothing tried twice.

`python caller.py PLAN` runs in a pod of the cluster, where callers are. It first waits until every
target has answered once, then calls them until SIGTERM, ends what is under way, and prints a line of JSON for each
thing that it saw (`rayhelm.rehearsal.load` reads them).
"""

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

__all__ = ["LoadTarget", "RequestResult", "main"]

_CUT = "cut"
TOKENS = 8
"""A stream of some pieces."""


@dataclass(frozen=True)
class LoadTarget:
    """A model, and how to reach it."""

    name: str
    """How reports call it."""
    url: str
    """Where `/v1/...` is."""
    model: str
    task: str = "chat"
    key: str = ""
    """Empty where nobody is asked for one."""
    tokens: int = TOKENS
    """Of an answer that is text."""
    version: str = ""
    """The version that is asked for; empty for whichever the gateway gives."""


@dataclass(frozen=True)
class RequestResult:
    """One request."""

    started: float
    """Seconds since the epoch."""
    seconds: float
    """Seconds to the last byte, or to what went wrong."""
    target: str
    kind: str
    """`short`, or `stream`."""
    version: str
    """The version that answered, as the gateway names it."""
    error: str
    """What is wrong with the answer; empty where nothing is."""
    interrupted: bool = False
    """A stream that had begun: whoever sent it is gone, and nobody else can go on with it."""


def main(plan: Path) -> int:
    """`plan` is JSON: targets, callers of each, seconds of pause, of patience, and until the first answers."""
    told: dict[str, Any] = json.loads(plan.read_text())
    targets = [LoadTarget(**target) for target in told["targets"]]
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    begin = time.monotonic()
    for target in targets:
        wrong = _first(target, begin + told["until_first"], ended)
        if wrong:
            _say({"silent": target.name, "wrong": wrong})
            return 1
        _say({"first": target.name, "after": time.monotonic() - begin})
    threads = [
        threading.Thread(target=_call, args=(target, number, told, ended))
        for target in targets
        for number in range(told["callers"])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _say({"ended": time.time()})
    return 0


def _first(target: LoadTarget, until: float, ended: threading.Event) -> str:
    """Waits for the first good answer: a service that is coming up is not what is measured. Returns what was wrong with
    the last one, empty when it was good."""
    with _client(target, patience=60) as client:
        while True:
            wrong, _ = _asked(lambda: _ANSWERS[target.task](client, target))
            if not wrong or time.monotonic() > until or ended.wait(1):
                return wrong


def _call(target: LoadTarget, number: int, told: Mapping[str, Any], ended: threading.Event) -> None:
    """Every other caller asks for streams, of models that have such."""
    stream = target.task == "chat" and number % 2 == 1
    answers = _stream if stream else _ANSWERS[target.task]
    with _client(target, patience=told["patience"]) as client:
        while not ended.wait(told["pause"]):
            begun, begin = time.time(), time.monotonic()
            wrong, version = _asked(lambda: answers(client, target))
            took = round(time.monotonic() - begin, 3)
            cut = wrong.startswith(_CUT)
            seen = RequestResult(begun, took, target.name, "stream" if stream else "short", version, wrong, cut)
            _say(asdict(seen))


def _client(target: LoadTarget, *, patience: float) -> httpx.Client:
    headers = {"Authorization": f"Bearer {target.key}"} if target.key else {}
    if target.version:
        headers["x-model-version"] = target.version
    return httpx.Client(base_url=target.url, headers=headers, timeout=patience, trust_env=False)


def _asked(ask: Callable[[], tuple[str, str]]) -> tuple[str, str]:
    try:
        return ask()
    except (httpx.HTTPError, LookupError, TypeError, ValueError) as error:  # also an answer of another shape
        return repr(error)[:300], ""


def _chat(client: httpx.Client, target: LoadTarget) -> tuple[str, str]:
    """What is wrong with the answer, and the version that gave it."""
    answer = client.post("/v1/chat/completions", json=_body(target))
    if wrong := _refused(answer):
        return wrong, _version(answer)
    tokens = answer.json()["usage"]["completion_tokens"]
    return "" if tokens == target.tokens else f"{tokens} tokens in place of {target.tokens}", _version(answer)


def _stream(client: httpx.Client, target: LoadTarget) -> tuple[str, str]:
    with client.stream("POST", "/v1/chat/completions", json={**_body(target), "stream": True}) as answer:
        if answer.status_code != 200:
            answer.read()
            return _refused(answer), _version(answer)
        body = b""
        try:
            for piece in answer.iter_bytes():
                body += piece
        except httpx.HTTPError as error:
            # Nothing was said yet, or nobody broke off: that is no stream that had begun and lost who sent it.
            silent = not body or isinstance(error, httpx.TimeoutException)
            return f"{'silent' if silent else _CUT} after {len(_lines(body))} pieces: {error!r}"[:300], _version(answer)
    lines = _lines(body)
    said = [json.loads(line) for line in lines if line != "[DONE]"]
    if errors := [each["error"] for each in said if "error" in each]:
        return f"{_CUT} after {len(said)} pieces: {errors[0]}"[:300], _version(answer)
    if not lines:
        return "an empty stream", _version(answer)
    if lines[-1] != "[DONE]":
        return f"{_CUT} after {len(lines)} pieces, without a word", _version(answer)
    ends = any(choice["finish_reason"] for each in said for choice in each["choices"])
    return "" if ends else "a stream without an end", _version(answer)


def _lines(body: bytes) -> list[str]:
    """Only line feeds end lines: httpx's own would cut at whatever Unicode calls a line's end, and models say such."""
    return [line.removeprefix("data: ") for line in body.decode(errors="replace").split("\n") if line]


def _embed(client: httpx.Client, target: LoadTarget) -> tuple[str, str]:
    answer = client.post("/v1/embeddings", json={"model": target.model, "input": "hello"})
    if wrong := _refused(answer):
        return wrong, _version(answer)
    (entry,) = answer.json()["data"]
    return "" if entry["embedding"] else "an empty embedding", _version(answer)


def _rerank(client: httpx.Client, target: LoadTarget) -> tuple[str, str]:
    answer = client.post("/v1/score", json={"model": target.model, "text_1": "hello", "text_2": "world"})
    if wrong := _refused(answer):
        return wrong, _version(answer)
    (entry,) = answer.json()["data"]
    return "" if isinstance(entry["score"], float) else f"no score: {entry}", _version(answer)


_ANSWERS: Mapping[str, Callable[[httpx.Client, LoadTarget], tuple[str, str]]] = {
    "chat": _chat,
    "embed": _embed,
    "rerank": _rerank,
}


def _body(target: LoadTarget) -> dict[str, Any]:
    messages = [{"role": "user", "content": "hi"}]
    return {"model": target.model, "messages": messages, "max_tokens": target.tokens, "ignore_eos": True}


def _refused(answer: httpx.Response) -> str:
    return "" if answer.status_code == 200 else f"{answer.status_code} {answer.text[:200]}"


def _version(answer: httpx.Response) -> str:
    return str(answer.headers.get("x-model-version", ""))


def _say(what: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")  # one write: threads share the line otherwise
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
