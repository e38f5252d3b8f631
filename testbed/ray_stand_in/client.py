"""Client of the stand-in for tests: read its state, and set failures."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TypedDict, Unpack

import httpx

from rayhelm.errors import RayhelmError
from testbed.ray_stand_in.failures import Broken, Failure
from testbed.ray_stand_in.memory import Put

__all__ = ["FailureFields", "RayStandIn"]


class FailureFields(TypedDict, total=False):
    """The fields of `Failure`, for type checkers."""

    applications: Mapping[str, Broken]
    dashboard: int | None
    serve: int | None
    hang: bool
    only_new: bool


class RayStandIn:
    """Client of the stand-in at `url` (http://127.0.0.1:8899). `name` is a RayCluster, or a RayService for all of its
    RayClusters. Every method raises RayhelmError if the stand-in refuses the request or does not answer."""

    def __init__(self, url: str, *, timeout: float = 120.0) -> None:
        self._client = httpx.Client(base_url=url, timeout=timeout, trust_env=False)

    def __enter__(self) -> "RayStandIn":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def ready(self) -> bool:
        """Return whether the stand-in has read the API server; before that it answers 502 for every host."""
        return bool(self._ask("GET", "/-/stand-in").json()["ready"])

    def checked_by(self) -> str:
        """Return the check of configurations: a version of Ray, or the shape of the JSON."""
        return str(self._ask("GET", "/-/stand-in").json()["checked_by"])

    def puts(self, namespace: str, name: str) -> tuple[Put, ...]:
        """Return all PUTs in order of time, including refused ones and those to deleted clusters of this name."""
        return tuple(map(Put.model_validate, self._read_state(namespace, name)["puts"]))

    def failure(self, namespace: str, name: str) -> Failure | None:
        """Return the failure that was set for exactly this name."""
        reported = self._read_state(namespace, name)["failure"]
        return None if reported is None else Failure.model_validate(reported)

    def fail(self, namespace: str, name: str, **reported: Unpack[FailureFields]) -> None:
        """Set a failure: `fail("models", "web", applications={"chat": "DEPLOY_FAILED"})`. It replaces an earlier
        failure of this name and stays until `heal`, even if the RayService is deleted. `failing` heals at the end of
        its block."""
        self._ask("PUT", f"/-/stand-in/{namespace}/{name}", content=Failure(**reported).model_dump_json())

    def heal(self, namespace: str, name: str) -> None:
        self._ask("DELETE", f"/-/stand-in/{namespace}/{name}")

    @contextmanager
    def failing(self, namespace: str, name: str, **reported: Unpack[FailureFields]) -> Iterator[None]:
        """Set a failure while the block runs."""
        self.fail(namespace, name, **reported)
        try:
            yield
        finally:
            self.heal(namespace, name)

    def _read_state(self, namespace: str, name: str) -> dict[str, Any]:
        reported: dict[str, Any] = self._ask("GET", f"/-/stand-in/{namespace}/{name}").json()
        return reported

    def _ask(self, method: str, path: str, content: str | None = None) -> httpx.Response:
        try:
            answer = self._client.request(method, path, content=content)
        except httpx.HTTPError as error:
            raise RayhelmError(f"no stand-in for Ray answers on {self._client.base_url}: {error}") from error
        if answer.status_code != 200:
            raise RayhelmError(f"the stand-in for Ray refused {method} {path}: {answer.text}")
        return answer
