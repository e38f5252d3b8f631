"""HTTP API of the stand-in for tests."""

import re
from collections.abc import Callable

from pydantic import ValidationError

from testbed.ray_stand_in.exchange import Answer, Request, as_json, text
from testbed.ray_stand_in.failures import Failure, Failures
from testbed.ray_stand_in.memory import Memory
from testbed.ray_stand_in.objects import Objects

__all__ = ["Control"]

PLACE = re.compile(r"/-/stand-in/(?P<namespace>[a-z0-9-]+)/(?P<name>[a-z0-9.-]+)")


class Control:
    """HTTP API for tests; the docstring of the package has the paths."""

    def __init__(
        self,
        objects: Objects,
        memory: Memory,
        failures: Failures,
        checked_by: Callable[[], str],
        ready: Callable[[], bool],
    ) -> None:
        self._objects = objects
        self._memory = memory
        self._failures = failures
        self._checked_by = checked_by
        self._ready = ready

    def __call__(self, request: Request) -> Answer:
        if (request.method, request.target) == ("GET", "/-/stand-in"):
            return as_json({"ready": self._ready(), "checked_by": self._checked_by()})
        place = PLACE.fullmatch(request.target)
        known = {"GET": self._answer_state, "PUT": self._fail, "DELETE": self._heal}
        if not place or request.method not in known:
            return text(404, f"{request.method} {request.target}: this is a stand-in for Ray; as a proxy it takes URLs")
        return known[request.method](place["namespace"], place["name"], request.body)

    def _answer_state(self, namespace: str, name: str, _: bytes) -> Answer:
        failure = self._failures.reported(namespace, name)
        return as_json(
            {
                "failure": failure.model_dump(mode="json") if failure else None,
                "puts": [put.model_dump(mode="json") for put in self._memory.puts(namespace, name)],
            }
        )

    def _fail(self, namespace: str, name: str, body: bytes) -> Answer:
        try:
            failure = Failure.model_validate_json(body)
        except ValidationError as error:
            return text(400, str(error))
        there = tuple(cluster.uid for cluster in self._objects.clusters()) if failure.only_new else ()
        self._failures.fail(namespace, name, failure, there)
        return text(200)

    def _heal(self, namespace: str, name: str, _: bytes) -> Answer:
        self._failures.heal(namespace, name)
        return text(200)
