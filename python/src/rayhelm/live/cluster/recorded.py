"""Answers of an API server as data, so that checks run on a cluster that is not there."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

__all__ = ["RecordedTransport", "Recording"]


class RecordedTransport:
    """Answers from a recording. A path that it does not have is answered with 404."""

    def __init__(self, answers: Mapping[str, Any], forbidden: frozenset[str] = frozenset()) -> None:
        self._answers, self._forbidden = answers, forbidden

    def get(self, path: str) -> tuple[int, Any]:
        """Return the recorded answer of a path, without its query."""
        plain = urlsplit(path).path
        if plain in self._forbidden:
            return 403, {"message": f"{plain} is forbidden"}
        if plain in self._answers:
            return 200, self._answers[plain]
        return 404, {"message": f"{plain} was not found"}


class Recording:
    """Passes requests on, and keeps the answers by path."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self.answers: dict[str, Any] = {}

    def get(self, path: str) -> tuple[int, Any]:
        """Pass on one request, and keep its answer."""
        status, answer = self._transport.get(path)
        if status == 200:
            self.answers[urlsplit(path).path] = answer
        return status, answer
