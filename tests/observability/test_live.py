"""Every query of the dashboards runs against real Ray Serve LLM, vLLM and the gateway under load."""

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rayhelm.catalog.metrics import load_exporters
from rayhelm.errors import MissingError
from rayhelm.local.prometheus import find_prometheus
from rayhelm.observability.check import metrics_of
from rayhelm.observability.rules import load_alerts
from testbed.live_metrics.endpoint import Endpoint, serve
from testbed.live_metrics.load import Sent, send_load
from testbed.tools import program

pytestmark = [pytest.mark.serve, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
LOAD, SETTLE = 60, 25
"""Seconds of load, and seconds until its last metrics are scraped: Ray refreshes them every 10 s."""
ABSENT_EXPORTERS = {
    "autoscaler": "the local endpoint has no autoscaler of Ray",
    "dcgm": "no GPU",
    "amd": "no GPU",
    "intel": "no GPU",
    "kuberay": "no Kubernetes",
    "kube-state-metrics": "no Kubernetes",
    "kubelet": "no Kubernetes",
    "cert-manager": "no Kubernetes",
    "rules": "the local endpoint loads no recording rules",
}
"""Exporters that a local endpoint without a GPU does not have, by file of the catalog."""
WITHOUT_DATA = {
    "ray_vllm_spec_decode_": "no model of the endpoint has speculative decoding",
    'Name="GPU"': "no GPU",
    "ray_cluster_active_nodes": "the local endpoint has no autoscaler of Ray",
}
"""Parts of queries that have no data here, and why."""


@dataclass(frozen=True)
class Run:
    """An endpoint after the load."""

    endpoint: Endpoint
    start: float
    end: float
    sent: Sent

    def has_data(self, expression: str) -> bool:
        text = re.sub(r"\$__(rate_interval|interval|range)\b", "1m", expression)
        text = re.sub(r"\$(cluster|namespace|service|model|tenant)\b", ".*", text)
        return bool(self.endpoint.query_range(text, self.start, self.end))


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    with pytest.MonkeyPatch.context() as patched:
        try:
            patched.setenv("PROMETHEUS", str(program("prometheus")))
            find_prometheus()
        except MissingError as error:
            pytest.skip(f"no prometheus: {error.how.splitlines()[0]} builds it")
        with serve() as endpoint:
            start = time.time()
            sent = asyncio.run(send_load(endpoint, LOAD))
            time.sleep(SETTLE)
            yield Run(endpoint, start, time.time(), sent)


def reason_without_data(expression: str) -> str:
    """Why a query cannot have data here; empty if it has to have some."""
    reasons = [reason for part, reason in WITHOUT_DATA.items() if part in expression]
    used = metrics_of(expression)
    exporters = [name for name, exporter in load_exporters().items() if used & exporter.metrics.keys()]
    reasons += [ABSENT_EXPORTERS[name] for name in exporters if name in ABSENT_EXPORTERS]
    return "; ".join(sorted(set(reasons)))


def queries_of(dashboard: Path) -> dict[str, str]:
    """Queries of the panels, by title and number."""
    panels = json.loads(dashboard.read_text())["panels"]
    return {
        f"{panel['title']} {target['refId']}": target["expr"] for panel in panels for target in panel.get("targets", [])
    }


def test_load_reached_the_models(run: Run) -> None:
    assert {200, 400, 401, 404} <= set(run.sent.statuses)
    assert run.sent.aborted
    assert not {status for status in run.sent.statuses if status >= 500}


@pytest.mark.parametrize("dashboard", sorted((ROOT / "dashboards").glob("*.json")), ids=lambda path: path.stem)
def test_panels_have_data(run: Run, dashboard: Path, capsys: pytest.CaptureFixture[str]) -> None:
    excused = {name: reason for name, text in queries_of(dashboard).items() if (reason := reason_without_data(text))}
    expected = {name: text for name, text in queries_of(dashboard).items() if name not in excused}
    empty = [name for name, text in expected.items() if not run.has_data(text)]
    with capsys.disabled():
        print(f"\n{dashboard.stem}: {len(expected) - len(empty)} of {len(expected)} queries have data", end="")
        for reason, count in sorted(Counter(excused.values()).items()):
            print(f"; {count} more cannot: {reason}", end="")
    assert not empty


def longest_time(values: list[list[object]], step: float) -> float:
    """Longest time in seconds without a gap between samples."""
    start = last = float(str(values[0][0]))
    longest = 0.0
    for moment in (float(str(value[0])) for value in values):
        start = start if moment - last <= step * 1.5 else moment
        last, longest = moment, max(longest, moment - start)
    return longest


@pytest.mark.parametrize("name", [name for name, alert in load_alerts().items() if not alert.always])
def test_alert_does_not_fire_in_a_normal_run(run: Run, name: str) -> None:
    alert = load_alerts()[name]
    pending = int(alert.pending[:-1]) * {"m": 60, "h": 3600, "d": 86400}[alert.pending[-1]]
    found = run.endpoint.query_range(alert.query, run.start, run.end)
    assert [series["metric"] for series in found if longest_time(series["values"], 10) >= pending] == []


def test_tokens_of_the_engine_are_those_of_the_responses(run: Run) -> None:
    """Streams that the client left count in the engine only."""
    counted = run.endpoint.query('sum(ray_vllm_generation_tokens_total{model_name="chat"})')
    assert float(counted[0]["value"][1]) >= run.sent.completion_tokens
