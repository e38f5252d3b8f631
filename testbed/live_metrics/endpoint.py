"""A local endpoint with Prometheus, and what Prometheus knows."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from rayhelm import processes
from rayhelm.errors import RayhelmError
from rayhelm.run.local import gateway
from rayhelm.run.local.state import EndpointState
from testbed.live_metrics.tenants import add_keys

__all__ = ["FLEET", "Endpoint", "Series", "serve"]

FLEET = Path(__file__).with_name("fleet.yaml")
ROOT = Path(__file__).parents[2]
RAYHELM = [sys.executable, "-m", "testbed.live_metrics.tenants"]
Series = dict[str, Any]
"""A result of Prometheus: `metric` has the labels, `values` pairs of time in seconds and text."""


@dataclass(frozen=True)
class Endpoint:
    """A running endpoint."""

    url: str
    keys: dict[str, str]
    """An API key of each tenant."""
    prometheus: str
    """URL of Prometheus."""
    data: Path
    """Data folder of Prometheus."""
    serve_url: str
    """URL of Ray Serve, without the gateway."""
    gateway_log: Path
    """Log of the gateway."""
    dashboard: str = ""
    """URL of Ray's dashboard."""
    token: str = ""
    """Token of Ray's dashboard."""
    ray_logs: Path = Path()
    """Folder of Ray's log files."""

    def query(self, expression: str) -> list[Series]:
        """Return the present result of a query. Raises RayhelmError if Prometheus refuses it."""
        return self._ask("query", {"query": expression})

    def query_range(self, expression: str, start: float, end: float, step: float = 10) -> list[Series]:
        """Return the result of a query at each step in seconds between two times in Unix seconds."""
        return self._ask("query_range", {"query": expression, "start": start, "end": end, "step": step})

    def scrape(self) -> dict[str, str]:
        """Return what each target exports now, by the name of its job and its port."""
        targets = self._get("targets")["activeTargets"]
        return {
            f"{target['labels']['job']} {target['scrapeUrl']}": httpx.get(
                target["scrapeUrl"], trust_env=False, timeout=60
            ).text
            for target in targets
        }

    def _ask(self, path: str, parameters: dict[str, Any]) -> list[Series]:
        result: list[Series] = self._get(path, parameters)["result"]
        return result

    def _get(self, path: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = httpx.get(f"{self.prometheus}/api/v1/{path}", params=parameters, trust_env=False, timeout=120).json()
        if answer["status"] != "success":
            raise RayhelmError(f"Prometheus refuses the query: {answer['error']}\n{parameters}")
        data: dict[str, Any] = answer["data"]
        return data


@contextmanager
def serve(fleet: Path = FLEET, traces: str = "") -> Iterator[Endpoint]:
    """Run `rayhelm up --metrics` with a state folder and several tenants, and stop it at the end. `traces` receives
    traces.

    Raises RayhelmError with the command's output if the endpoint does not start.
    """
    with tempfile.TemporaryDirectory(prefix="rayhelm-live-") as folder:
        state = EndpointState(Path(folder))
        port = processes.find_free_port(set())
        words = ["up", str(fleet), "--metrics", "--share-imports", "--state", folder, "--port", str(port)]
        words += ["--traces", traces] if traces else []
        try:
            done = subprocess.run(
                [*RAYHELM, *words, "--format", "json"],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
                timeout=1800,
            )
            if done.returncode:
                raise RayhelmError(f"rayhelm {' '.join(words)} ends with {done.returncode}:\n{done.stderr}")
            ready = json.loads(done.stdout)
            endpoint = Endpoint(
                url=ready["url"],
                keys={gateway.TENANT: ready["key"], **add_keys(state)},
                prometheus=ready["prometheus"],
                data=state.prometheus / "data",
                serve_url=ready["serve_url"],
                gateway_log=state.logs / "gateway.log",
                dashboard=f"http://127.0.0.1:{ready['dashboard']}",
                token=state.token.read_text(),
                ray_logs=state.session / "session_latest/logs",
            )
            for key in endpoint.keys.values():
                processes.wait_until(partial(_accepts, endpoint.url, key), what="the gateway", timeout=60)
            yield endpoint
        finally:
            processes.stop_run(state.run, grace=2)
            state.clear()


def _accepts(url: str, key: str) -> bool | None:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.get(f"{url}/v1/models", headers=headers, trust_env=False, timeout=60).is_success or None
