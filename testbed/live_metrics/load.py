"""Requests of many kinds, so that metrics of all of them appear: good ones, refused ones, and ones that end early."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import httpx

from testbed.live_metrics.endpoint import Endpoint
from testbed.live_metrics.tenants import ALONE

__all__ = ["PREFIX", "Sent", "send_complete", "send_load"]

PREFIX = "You are a helpful assistant. " * 20
"""Start of all chat requests, for the prefix cache."""


@dataclass
class Sent:
    """What was sent and answered."""

    statuses: Counter[int] = field(default_factory=Counter)
    """Responses by HTTP status."""
    aborted: int = 0
    """Streams that the client left."""
    prompt_tokens: int = 0
    """Sum of `usage.prompt_tokens` of complete answers of model `chat`."""
    completion_tokens: int = 0
    """Sum of `usage.completion_tokens` of complete answers of model `chat`."""


async def send_load(endpoint: Endpoint, seconds: float, clients: int = 6, pause: float = 0) -> Sent:
    """Send requests for a time with concurrent clients of all tenants but `ALONE`, and return what was answered. Each
    client waits `pause` seconds between two requests."""
    sent, deadline = Sent(), time.monotonic() + seconds
    kinds: list[Callable[[httpx.AsyncClient, Sent, int], Awaitable[None]]] = [
        _chat,
        _stream,
        _embed,
        _abort,
        _chat,
        _unknown_model,
        _stream,
        _no_key,
        _invalid,
        _embed,
    ]
    tenants = [tenant for tenant in endpoint.keys if tenant != ALONE]

    async def work(client: int) -> None:
        number = client
        async with connect(endpoint, tenants[client % len(tenants)]) as http:
            # Each client sends at least one request of each kind, however slow the computer is.
            while time.monotonic() < deadline or number < client + clients * len(kinds):
                await kinds[(number // clients) % len(kinds)](http, sent, number)
                number += clients
                await asyncio.sleep(pause)

    await asyncio.gather(*(work(client) for client in range(clients)))
    return sent


def connect(endpoint: Endpoint, tenant: str) -> httpx.AsyncClient:
    """Return a client that sends requests of a tenant."""
    headers = {"Authorization": f"Bearer {endpoint.keys[tenant]}"}
    return httpx.AsyncClient(base_url=endpoint.url, headers=headers, timeout=600, trust_env=False)


async def send_complete(endpoint: Endpoint, tenant: str, count: int = 3) -> Sent:
    """Send requests of one tenant that all complete, and return what was answered."""
    sent = Sent()
    async with connect(endpoint, tenant) as http:
        for number in range(count):
            await _chat(http, sent, number)
            await _stream(http, sent, number)
    return sent


def _messages(number: int) -> list[dict[str, str]]:
    return [{"role": "system", "content": PREFIX}, {"role": "user", "content": f"Question {number}"}]


async def _chat(http: httpx.AsyncClient, sent: Sent, number: int) -> None:
    body = {"model": "chat", "messages": _messages(number), "max_tokens": 20 + number % 80}
    answer = await http.post("/v1/chat/completions", json=body)
    sent.statuses[answer.status_code] += 1
    if answer.is_success:
        sent.prompt_tokens += answer.json()["usage"]["prompt_tokens"]
        sent.completion_tokens += answer.json()["usage"]["completion_tokens"]


async def _stream(http: httpx.AsyncClient, sent: Sent, number: int) -> None:
    options = {"stream": True, "stream_options": {"include_usage": True}}
    body = {"model": "chat", "messages": _messages(number), "max_tokens": 100, "ignore_eos": True, **options}
    async with http.stream("POST", "/v1/chat/completions", json=body) as answer:
        sent.statuses[answer.status_code] += 1
        text = (await answer.aread()).decode()
    if answer.is_success:
        import json

        usage = next(
            chunk["usage"] for chunk in map(json.loads, _events(text)) if isinstance(chunk, dict) and chunk.get("usage")
        )
        sent.prompt_tokens += usage["prompt_tokens"]
        sent.completion_tokens += usage["completion_tokens"]


def _events(text: str) -> list[str]:
    """The last events of a stream, without the final `[DONE]`."""
    events = [event.removeprefix("data: ") for event in text.split("\n\n") if event.startswith("data: ")]
    return [event for event in events if event != "[DONE]"][-2:]


async def _abort(http: httpx.AsyncClient, sent: Sent, number: int) -> None:
    body = {"model": "chat", "messages": _messages(number), "max_tokens": 3000, "ignore_eos": True, "stream": True}
    async with http.stream("POST", "/v1/chat/completions", json=body) as answer:
        async for _ in answer.aiter_bytes():
            break
    sent.aborted += 1


async def _embed(http: httpx.AsyncClient, sent: Sent, number: int) -> None:
    answer = await http.post("/v1/embeddings", json={"model": "embed", "input": f"Sentence {number}"})
    sent.statuses[answer.status_code] += 1


async def _unknown_model(http: httpx.AsyncClient, sent: Sent, number: int) -> None:
    body = {"model": f"unknown-{number % 3}", "messages": _messages(number)}
    answer = await http.post("/v1/chat/completions", json=body)
    sent.statuses[answer.status_code] += 1


async def _no_key(http: httpx.AsyncClient, sent: Sent, number: int) -> None:
    body = {"model": "chat", "messages": _messages(number)}
    answer = await http.post("/v1/chat/completions", json=body, headers={"Authorization": "Bearer wrong"})
    sent.statuses[answer.status_code] += 1


async def _invalid(http: httpx.AsyncClient, sent: Sent, number: int) -> None:
    """The engine refuses it: more tokens than the context."""
    body = {"model": "chat", "messages": _messages(number), "max_tokens": 10_000_000}
    answer = await http.post("/v1/chat/completions", json=body)
    sent.statuses[answer.status_code] += 1
