"""A request and its answer, without sockets."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Answer", "NoAnswer", "Request", "as_json", "text"]


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    """Request target: an absolute URL from a client of a proxy, else a path."""
    headers: Mapping[str, str]
    """Headers by lowercase name."""
    body: bytes = b""


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes = b""
    kind: str = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class NoAnswer:
    """No answer while `goes_on` returns true."""

    goes_on: Callable[[], bool]


def text(status: int, said: str = "") -> Answer:
    return Answer(status, said.encode())


def as_json(content: Any, status: int = 200) -> Answer:
    return Answer(status, json.dumps(content).encode(), "application/json")
