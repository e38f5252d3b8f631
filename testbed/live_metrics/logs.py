"""Requests whose logs are read: good ones, and ones that Ray Serve or vLLM refuses and quotes in exceptions."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from rayhelm.deploy.values.ray_service.logs import StdoutLogs
from rayhelm.run.local.gateway import TENANT
from rayhelm.runtime import log_relay
from testbed.live_metrics.endpoint import Endpoint

__all__ = ["ABORTED", "PROMPT", "SERVED", "UNSEEN", "read_ray_logs", "send_logged_requests"]

PROMPT = "zebra-secret-prompt"
"""Text of all requests, which no log may contain."""
ABORTED = "logged-aborted"
_USER = [{"role": "user", "content": PROMPT}]
_CHAT: dict[str, Any] = {"model": "chat", "messages": _USER, "max_tokens": 5}
SERVED: Mapping[str, tuple[str, dict[str, Any]]] = {
    "logged-chat": ("/v1/chat/completions", _CHAT),
    "logged-stream": ("/v1/chat/completions", {**_CHAT, "stream": True}),
    "logged-completion": ("/v1/completions", {"model": "chat", "prompt": PROMPT, "max_tokens": 5}),
    "logged-embedding": ("/v1/embeddings", {"model": "embed", "input": PROMPT}),
}
"""Path and body of requests that the engine answers, by request id."""
_REFUSED: Mapping[str, tuple[str, dict[str, Any]]] = {
    "content": (
        "/v1/chat/completions",
        {**_CHAT, "messages": [{"role": "user", "content": [{"type": PROMPT, "text": PROMPT}]}]},
    ),
    "schema": (
        "/v1/chat/completions",
        {**_CHAT, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": PROMPT}}}},
    ),
    "grammar": ("/v1/chat/completions", {**_CHAT, "structured_outputs": {"regex": f"({PROMPT}"}}),
    "tools": (
        "/v1/chat/completions",
        {**_CHAT, "tools": [{"type": PROMPT, "function": {"name": PROMPT}}], "tool_choice": PROMPT},
    ),
    "bias": ("/v1/chat/completions", {**_CHAT, "logit_bias": {PROMPT: 1}}),
    "types": ("/v1/chat/completions", {**_CHAT, "stop": {PROMPT: 1}, "temperature": PROMPT}),
    "prompt": ("/v1/completions", {"model": "chat", "prompt": [PROMPT, {PROMPT: 1}]}),
}

_REFUSED_BY_GATEWAY: Mapping[str, tuple[str, dict[str, Any]]] = {
    "messages": ("/v1/chat/completions", {**_CHAT, "messages": PROMPT}),
    "input": ("/v1/embeddings", {"model": "embed", "input": {PROMPT: PROMPT}}),
    # An id in the body would replace the one of the gateway.
    "own-id": ("/v1/chat/completions", {**_CHAT, "request_id": "impostor-id"}),
}
UNSEEN = frozenset(f"logged-refused-{key}" for key in _REFUSED_BY_GATEWAY)
"""Request ids that Ray Serve never sees."""


def send_logged_requests(endpoint: Endpoint) -> dict[str, int]:
    """Send all requests with a forged tenant, and return the status by request id. The client leaves one stream."""
    found = {}
    with httpx.Client(base_url=endpoint.url, trust_env=False, timeout=600) as http:
        http.headers = httpx.Headers(
            {"Authorization": f"Bearer {endpoint.keys[TENANT]}", "x-rayhelm-tenant": "impostor"}
        )
        for name, (path, body) in {
            **SERVED,
            **{f"logged-refused-{key}": value for key, value in {**_REFUSED, **_REFUSED_BY_GATEWAY}.items()},
        }.items():
            found[name] = http.post(path, json=body, headers={"x-request-id": name}).status_code
        long = {**_CHAT, "stream": True, "max_tokens": 7500, "ignore_eos": True}
        with http.stream("POST", "/v1/chat/completions", json=long, headers={"x-request-id": ABORTED}) as answer:
            next(answer.iter_bytes())
    return found


def read_ray_logs(folder: Path, is_enough: Callable[[list[dict[str, Any]]], bool], seconds: float = 300) -> list[str]:
    """Return what the container `logs` of a Ray pod writes, once the records are enough or after `seconds`."""
    command = [sys.executable, "-I", "-B", log_relay.__file__, str(folder), *StdoutLogs().files]
    deadline = time.monotonic() + seconds
    lines: list[str] = []
    while True:
        # The program ends after one pass over the files if it is stopped at once.
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            lines = [process.stdout.readline()]
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            lines += process.stdout.readlines()
        if is_enough([json.loads(line) for line in lines]) or time.monotonic() > deadline:
            return lines
        time.sleep(1)
