"""The page of `rayhelm plan --page`, and the server of `--open`, which only this computer reaches."""

import webbrowser
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from rayhelm.cli.files import write_file
from rayhelm.cli.output import Format
from rayhelm.deploy.render.plan_view import Field, build_plan_view
from rayhelm.errors import RayhelmError, UsageError, collect
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.load import LoadedFleet
from rayhelm.planner.added_capacity import ChangedPlan
from rayhelm.planner.planner import plan_fleet
from rayhelm.planner.what_if import parse_changes, plan_changed

__all__ = ["PlanServer", "check_options", "show_page", "write_page"]

_MODEL = {"ttft": "time to first token", "tpot": "time per output token"}
_EXAMPLES = {"traffic": "2x", "ttft": "500ms", "tpot": "40ms", "nodes": "2x", "gpu": "H200-SXM-141GB", "price": "2.5"}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"


def check_options(format: Format, what_if: str | None, *, open_page: bool, alternatives: bool) -> None:
    """Raises UsageError for an option that a page does not have."""
    if format is Format.json:
        raise UsageError(
            "`--format json` prints the plan, and `--page` and `--open` show a page: leave one of them out"
        )
    if alternatives:
        raise UsageError("the page has no `--alternatives`: leave the option out, and print them without a page")
    if open_page and what_if is not None:
        raise UsageError("the page of `--open` has fields for changes: leave `--what-if` out")


def write_page(loaded: LoadedFleet, what_if: str | None, file: Path) -> None:
    """Write the page. Raises FleetError, also if the file cannot be written."""
    now = plan_fleet(loaded)
    then = plan_changed(loaded, parse_changes(what_if, loaded)) if what_if is not None else None
    write_file(file, build_plan_view(now, then, changes=what_if or ""), "rayhelm plan FLEET --page FILE")
    print(f"written  {file}")


def show_page(loaded: LoadedFleet) -> None:
    """Serve the page and open a browser, until ctrl-C. Raises FleetError if the fleet has no plan."""
    with PlanServer(loaded) as server:
        print(f"The plan is at {server.url} until ctrl-C. Only this computer reaches it.", flush=True)
        webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


class PlanServer(ThreadingHTTPServer):
    """Plans the fleet with the changes of each request. It listens on 127.0.0.1 only."""

    daemon_threads = True

    def __init__(self, loaded: LoadedFleet, port: int = 0) -> None:
        self.now = plan_fleet(loaded)
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"

    def build_page(self, query: Mapping[str, str]) -> str:
        """Return the page for the fields of the form."""
        changes = ",".join(f"{name}={value.strip()}" for name, value in query.items() if value.strip())
        then, problems = self._plan(changes) if changes else (None, [])
        return build_plan_view(self.now, then, list(_list_fields(self.now.source.fleet, query)), changes, problems)

    def _plan(self, changes: str) -> tuple[ChangedPlan | None, list[str]]:
        loaded = self.now.source
        try:
            plan, problems = collect(lambda: plan_changed(loaded, parse_changes(changes, loaded)))
        except RayhelmError as error:
            return None, [str(error)]
        return plan, [str(problem) for problem in problems]


def _list_fields(fleet: Fleet, query: Mapping[str, str]) -> Iterator[Field]:
    for name, model in fleet.models.items():
        keys = (
            {"traffic": f"times {model.traffic.requests_per_second:g} requests/s"}
            if model.traffic and model.states_traffic
            else {}
        )
        for key, what in (keys | _MODEL).items():
            yield _build_field(name, key, what, query)
    for name, pool in fleet.pools.items():
        keys = {} if pool.hosts else {"nodes": f"nodes, now {pool.nodes or 1}", "gpu": f"GPU, now {pool.gpu}"}
        for key, what in (keys | {"price": "USD per GPU and hour"}).items():
            yield _build_field(f"pool {name}", key, what, query, name)


def _build_field(part: str, key: str, what: str, query: Mapping[str, str], name: str = "") -> Field:
    field = f"{name or part}.{key}"
    return Field(field, part, what, query.get(field, ""), _EXAMPLES[key])


class _Handler(BaseHTTPRequestHandler):
    server: PlanServer

    def do_GET(self) -> None:
        # A foreign page whose name resolves to this computer has its own name in the header.
        if self.headers.get("Host") not in {f"{host}:{self.server.server_port}" for host in ("127.0.0.1", "localhost")}:
            self.send_error(HTTPStatus.FORBIDDEN)
            return
        address = urlsplit(self.path)
        if address.path != "/":
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        page = self.server.build_page(dict(parse_qsl(address.query))).encode()
        self.send_response(HTTPStatus.OK)
        for name, value in (
            ("Content-Type", "text/html; charset=utf-8"),
            ("Content-Length", str(len(page))),
            ("Content-Security-Policy", _POLICY),
            ("Cache-Control", "no-store"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: Any) -> None:
        """Each request is one click of a person: nothing to log."""
