"""Answer each request as Ray does, or with the failure that a test has set."""

from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from testbed.ray_stand_in.control import Control
from testbed.ray_stand_in.dashboard import Dashboard
from testbed.ray_stand_in.exchange import Answer, NoAnswer, Request, text
from testbed.ray_stand_in.failures import Failures
from testbed.ray_stand_in.lookup import Dead, Head, head_of_ip, head_of_service
from testbed.ray_stand_in.memory import Memory
from testbed.ray_stand_in.objects import LOOPBACK, Objects, Unreachable
from testbed.ray_stand_in.schema import shape_check

__all__ = ["App"]


class App:
    """The application. `ready`: whether `objects` has read the API server. `check`: returns Ray's error for a
    configuration."""

    def __init__(
        self,
        objects: Objects,
        *,
        domain: str = "cluster.local",
        state: Path | None = None,
        check: Callable[[object], str | None] = shape_check,
        checked_by: Callable[[], str] = lambda: "shape",
        ready: Callable[[], bool] = lambda: True,
    ) -> None:
        self._objects = objects
        self._domain = domain
        self._memory = Memory(state)
        self._failures = Failures(state)
        self._dashboard = Dashboard(objects, self._memory, check)
        self._control = Control(objects, self._memory, self._failures, checked_by, ready)
        self._ready = ready

    def __call__(self, request: Request) -> Answer | NoAnswer:
        if request.target.startswith("/"):
            return self._control(request)
        try:
            url = urlsplit(request.target)
            port = url.port or 80
        except ValueError as error:
            return text(400, f"{request.target}: {error}")
        try:
            return self._answer_proxied(request, url, port)
        except Dead as dead:
            return text(502, str(dead))
        except Unreachable as error:
            return text(502, f"the API server does not answer: {error}")

    def _answer_proxied(self, request: Request, url: SplitResult, port: int) -> Answer | NoAnswer:
        if url.scheme != "http":
            raise Dead(f"{request.target}: only http is supported")
        if not self._ready():
            raise Dead("the API server was not read yet")
        host = url.hostname or ""
        if _is_ip(host):
            return self._serve(request, url, head_of_ip(self._objects, host), port)
        return self._answer_dashboard(request, url, head_of_service(self._objects, host, self._domain), port)

    def _answer_dashboard(self, request: Request, url: SplitResult, head: Head, port: int) -> Answer | NoAnswer:
        if port != head.pod.dashboard_port:
            where = f"listens on {head.pod.dashboard_port}" if head.pod.dashboard_port else "cannot be reached"
            raise Dead(f"no process listens on port {port}: the dashboard of {head.pod.name} {where}")
        failure = self._failures.of(head)
        if failure.hang:
            return self._build_no_answer(head)
        return self._dashboard(request, url, head, failure)

    def _serve(self, request: Request, url: SplitResult, head: Head, port: int) -> Answer | NoAnswer:
        deployed = self._memory.deployed(head)
        if deployed is None:
            raise Dead(f"no process listens on port {port}: Serve does not run on {head.pod.name} before the first PUT")
        options = deployed.started_with.get("http_options") or {}
        listens = int(options.get("port", 8000))
        if deployed.started_with.get("proxy_location") == "Disabled" or options.get("host") in LOOPBACK:
            raise Dead(f"no process listens on port {port}: Serve's proxy is disabled or on loopback")
        if port != listens:
            raise Dead(f"no process listens on port {port}: Serve on {head.pod.name} listens on {listens}")
        failure = self._failures.of(head)
        if failure.hang:
            return self._build_no_answer(head)
        if (request.method, url.path) != ("GET", "/-/healthz"):
            return text(404, f"the stand-in for Ray does not answer {request.method} {url.path}")
        if failure.serve:
            return text(failure.serve, "set to fail")
        return text(200, "success") if deployed.has_routes else text(503, "Route table is not populated yet.")

    def _build_no_answer(self, head: Head) -> NoAnswer:
        return NoAnswer(lambda: self._failures.of(head).hang)


def _is_ip(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
