"""Ray's dashboard: the two API calls of the operator for a RayService."""

import json
from collections.abc import Callable
from urllib.parse import SplitResult, parse_qs

from testbed.ray_stand_in.details import NOTHING_DEPLOYED, details, name_of
from testbed.ray_stand_in.exchange import Answer, Request, as_json, text
from testbed.ray_stand_in.failures import Failure
from testbed.ray_stand_in.lookup import Head, lacking
from testbed.ray_stand_in.memory import Deployed, Memory
from testbed.ray_stand_in.objects import Objects
from testbed.ray_stand_in.token import Tokens

__all__ = ["Dashboard"]

APPLICATIONS = "/api/serve/applications/"


class Dashboard:
    """The dashboard API. `check` returns Ray's error for a configuration, or None."""

    def __init__(self, objects: Objects, memory: Memory, check: Callable[[object], str | None]) -> None:
        self._objects = objects
        self._memory = memory
        self._check = check
        self._tokens = Tokens(objects)

    def __call__(self, request: Request, url: SplitResult, head: Head, failure: Failure) -> Answer:
        """Answer a request. Raises Dead or Unreachable."""
        refusal = text(failure.dashboard, "set to fail") if failure.dashboard else self._tokens.refusal(head, request)
        known = {"GET": self._get, "PUT": self._put} if url.path == APPLICATIONS else {}
        if request.method not in known:
            return refusal or text(404, f"the stand-in for Ray does not answer {request.method} {url.path}")
        if refusal is None:
            return known[request.method](request, url, head, failure)
        if request.method == "PUT":
            said = refusal.body.decode()
            self._memory.refuse(head, request.body.decode(errors="replace"), refusal.status, said)
        return refusal

    def _get(self, request: Request, url: SplitResult, head: Head, failure: Failure) -> Answer:
        asked = parse_qs(url.query).get("api_type", ["declarative"])[0]
        if asked.lower() not in ("imperative", "declarative"):
            return text(400, f"Invalid 'api_type' value: '{asked}'. Must be one of: imperative, declarative")
        deployed = self._memory.deployed(head)
        if deployed is None:
            return as_json(NOTHING_DEPLOYED)
        answer = details(deployed, self._find_statuses(head, deployed, failure))
        return as_json({**answer, "applications": {}} if asked.lower() == "imperative" else answer)

    def _put(self, request: Request, url: SplitResult, head: Head, failure: Failure) -> Answer:
        try:
            config = json.loads(request.body)
        except ValueError as error:
            # Ray's dashboard answers with a traceback that ends with this line.
            answer = text(500, f"{type(error).__module__}.{type(error).__name__}: {error}")
            self._memory.refuse(head, request.body.decode(errors="replace"), 500, answer.body.decode())
            return answer
        objection = self._check(config)
        if objection is not None:
            self._memory.refuse(head, config, 400, objection)
            return text(400, objection)
        self._memory.accept(head, config)
        return text(200)

    def _find_statuses(self, head: Head, deployed: Deployed, failure: Failure) -> dict[str, tuple[str, str]]:
        names = frozenset(map(name_of, deployed.config["applications"]))
        lacks = lacking(self._objects, head.cluster)
        running = deployed.running if lacks else names.difference(failure.applications)
        self._memory.note_running(head, deployed.config, running | deployed.running)
        reason = ", ".join(f"group {group} lacks {count} Ready pods" for group, count in lacks.items())
        return {name: _find_status(name, failure, running, reason) for name in names}


def _find_status(name: str, failure: Failure, was_running: frozenset[str], reason: str) -> tuple[str, str]:
    if name in failure.applications:
        return failure.applications[name], "set to fail"
    if not reason:
        return "RUNNING", ""
    return "UNHEALTHY" if name in was_running else "DEPLOYING", reason
