"""Steady load on the gateway: short requests and streams, each answer looked at. Nothing is tried twice."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

__all__ = ["Load", "load"]

TOKENS = 8
PAUSE = 0.5
"""Seconds between two requests of one caller."""
PATIENCE = 60
"""Seconds for an answer."""


@dataclass
class Load:
    """What came of it."""

    answered: int = 0
    lost: list[str] = field(default_factory=list)
    """One line for each request that was not answered as it should be."""
    slowest: float = 0.0
    """Seconds."""

    def count(self, begin: float, wrong: str) -> None:
        took = time.monotonic() - begin
        if wrong:
            self.lost.append(f"{time.strftime('%H:%M:%S')} after {took:.1f} s: {wrong}")
        else:
            self.answered += 1
            self.slowest = max(self.slowest, took)


@contextmanager
def load(url: str, key: str, model: str, *, callers: int = 4) -> Iterator[Load]:
    """Half of the callers ask for streams. On leaving, requests under way are waited for."""
    result, ended = Load(), threading.Event()
    threads = [
        threading.Thread(target=_call, args=(result, ended, url, key, model, bool(number % 2)))
        for number in range(callers)
    ]
    for thread in threads:
        thread.start()
    try:
        yield result
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _call(result: Load, ended: threading.Event, url: str, key: str, model: str, stream: bool) -> None:
    headers = {"Authorization": f"Bearer {key}"}
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}], "max_tokens": TOKENS, "ignore_eos": True}
    with httpx.Client(base_url=url, headers=headers, timeout=PATIENCE, trust_env=False) as client:
        while not ended.wait(PAUSE):
            begin = time.monotonic()
            try:
                wrong = _stream(client, body) if stream else _ask(client, body)
            except httpx.HTTPError as error:
                wrong = repr(error)
            result.count(begin, wrong)


def _ask(client: httpx.Client, body: dict[str, Any]) -> str:
    """What is wrong with the answer; empty where nothing is."""
    answer = client.post("/v1/chat/completions", json=body)
    if answer.status_code != 200:
        return f"{answer.status_code} {answer.text[:200]}"
    tokens = answer.json()["usage"]["completion_tokens"]
    return "" if tokens == TOKENS else f"{tokens} tokens"


def _stream(client: httpx.Client, body: dict[str, Any]) -> str:
    with client.stream("POST", "/v1/chat/completions", json={**body, "stream": True}) as answer:
        if answer.status_code != 200:
            return f"{answer.status_code} {answer.read()[:200]!r}"
        lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line]
    if not lines or lines[-1] != "[DONE]":
        return f"a stream that ends in {lines[-1:]}"
    reasons = [choice["finish_reason"] for line in lines[:-1] for choice in json.loads(line)["choices"]]
    return "" if any(reasons) else "a stream without an end"
