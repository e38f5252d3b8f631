"""How tests read and set the failures of the stand-in."""

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
    """`url`: where the stand-in listens, for example http://127.0.0.1:8899. A name is that of a RayCluster or of a
    RayService, which means all of its RayClusters. Every method raises RayhelmError where the stand-in refuses or is
    not there."""

    def __init__(self, url: str, *, timeout: float = 30.0) -> None:
        self._client = httpx.Client(base_url=url, timeout=timeout, trust_env=False)

    def __enter__(self) -> "RayStandIn":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def ready(self) -> bool:
        """It has seen the API server: before that every host is dead to it."""
        return bool(self._ask("GET", "/-/stand-in").json()["ready"])

    def checked_by(self) -> str:
        """What checks configurations: a version of Ray, or the shape of the JSON."""
        return str(self._ask("GET", "/-/stand-in").json()["checked_by"])

    def puts(self, namespace: str, name: str) -> tuple[Put, ...]:
        """Return every PUT so far in the order of time, refused ones included, and those to clusters that are gone:
        also to those of an earlier RayService of this name."""
        return tuple(map(Put.model_validate, self._instructions(namespace, name)["puts"]))

    def failure(self, namespace: str, name: str) -> Failure | None:
        """Return the failure that was set under exactly this name."""
        reported = self._instructions(namespace, name)["failure"]
        return None if reported is None else Failure.model_validate(reported)

    def fail(self, namespace: str, name: str, **reported: Unpack[FailureFields]) -> None:
        """As `Failure` has it: `fail("models", "web", applications={"chat": "DEPLOY_FAILED"})`. From now on, until it
        is healed, and as said here alone, whatever was said before under this name. It outlives the RayService:
        `failing` heals by itself."""
        self._ask("PUT", f"/-/stand-in/{namespace}/{name}", content=Failure(**reported).model_dump_json())

    def heal(self, namespace: str, name: str) -> None:
        self._ask("DELETE", f"/-/stand-in/{namespace}/{name}")

    @contextmanager
    def failing(self, namespace: str, name: str, **reported: Unpack[FailureFields]) -> Iterator[None]:
        """Fails within, and is healed whatever happens there."""
        self.fail(namespace, name, **reported)
        try:
            yield
        finally:
            self.heal(namespace, name)

    def _instructions(self, namespace: str, name: str) -> dict[str, Any]:
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
