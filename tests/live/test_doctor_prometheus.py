"""The doctor's checks of a Prometheus: targets, rules, and the queries of dashboards and alerts."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest
import yaml

from rayhelm.facts.metrics import load_metrics
from rayhelm.live.cost.client import open_client
from rayhelm.live.doctor.finding import CheckState, DoctorReport
from rayhelm.live.doctor.queries import list_queries
from rayhelm.observe.promql import parse
from shared.doctor_world import World, fleet

CHECKS = ("prometheus-targets", "prometheus-rules", "queries", "scaler-series", "classic-histograms")


class FakePrometheus:
    """Answers of a Prometheus that has every metric of the catalog, every rule, and no target that is down."""

    def __init__(self) -> None:
        self.names = [
            name if metric.type != "histogram" else f"{name}_bucket" for name, metric in load_metrics().items()
        ]
        self.targets: list[dict[str, Any]] = []
        self.rules: list[dict[str, Any]] = []
        self.refused: dict[str, str] = {}
        self.config: dict[str, Any] = {}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/api/v1/")
        if path == "query":
            query = parse_qs(request.content.decode())["query"][0]
            for part, error in self.refused.items():
                if part in query:
                    return httpx.Response(422, json={"status": "error", "error": error})
            return _answer({"resultType": "vector", "result": []})
        answers: dict[str, Any] = {
            "label/__name__/values": self.names,
            "targets": {"activeTargets": self.targets},
            "rules": {"groups": [{"name": "rayhelm", "rules": self.rules}]},
            "status/config": {"yaml": yaml.safe_dump(self.config)},
        }
        return _answer(answers[path])


@pytest.fixture
def prometheus() -> FakePrometheus:
    return FakePrometheus()


@contextmanager
def report(answer: Any, *checks: str) -> Iterator[DoctorReport]:
    with open_client("http://prometheus", {}, httpx.MockTransport(answer)) as client:
        yield World(fleet()).examine(*(checks or CHECKS), prometheus=client)


def _answer(data: Any) -> httpx.Response:
    return httpx.Response(200, json={"status": "success", "data": data})


def test_healthy_prometheus_has_no_findings(prometheus: FakePrometheus) -> None:
    with report(prometheus) as found:
        assert found.findings == ()
        assert {result.state for result in found.checks} == {CheckState.ok}


def test_target_that_is_down_is_found(prometheus: FakePrometheus) -> None:
    labels = {"namespace": "lab", "pod": "qwen3-32b-head"}
    prometheus.targets = [
        {
            "health": "down",
            "lastError": "context deadline exceeded",
            "scrapeUrl": "http://10.0.0.1:8080",
            "labels": labels,
        },
        {"health": "down", "lastError": "refused", "labels": {"namespace": "of-others"}},
        {"health": "up", "labels": labels},
    ]
    with report(prometheus, "prometheus-targets") as found:
        (finding,) = found.findings
        assert finding.object == "target lab/qwen3-32b-head"
        assert "context deadline exceeded" in finding.evidence


CONVERTS, KEEPS = "convert_classic_histograms_to_nhcb", "always_scrape_classic_histograms"


@pytest.mark.parametrize(
    ("shared", "job", "pool", "is_found"),
    [
        ({}, {CONVERTS: True}, "ray", True),
        ({CONVERTS: True}, {}, "ray", True),
        ({CONVERTS: True}, {KEEPS: True}, "ray", False),
        ({CONVERTS: True, KEEPS: True}, {}, "ray", False),
        ({CONVERTS: True}, {CONVERTS: False}, "ray", False),
        ({KEEPS: False, "scrape_native_histograms": True}, {}, "ray", False),
        ({CONVERTS: True}, {}, "of-others", False),
    ],
    ids=["job", "global", "job-keeps", "global-keeps", "job-converts-not", "native-only", "job-of-others"],
)
def test_job_without_buckets_is_found(
    prometheus: FakePrometheus, shared: dict[str, bool], job: dict[str, bool], pool: str, is_found: bool
) -> None:
    """Ray and vLLM expose classic histograms as text: only their conversion drops `_bucket`."""
    labels = {"namespace": "lab" if pool == "ray" else "of-others", "pod": "qwen3-32b-head"}
    prometheus.targets = [{"health": "up", "labels": labels, "scrapePool": pool}]
    prometheus.config = {"global": shared, "scrape_configs": [{"job_name": pool, **job}]}
    with report(prometheus, "classic-histograms") as found:
        assert [finding.object for finding in found.findings] == ([f"scrape job {pool}"] if is_found else [])
        assert all("always_scrape_classic_histograms: true" in finding.fix for finding in found.findings)


def test_rule_that_cannot_be_evaluated_is_found(prometheus: FakePrometheus) -> None:
    prometheus.rules = [{"name": "QueueGrowing", "health": "err", "lastError": "many-to-many matching not allowed"}]
    with report(prometheus, "prometheus-rules") as found:
        (finding,) = found.findings
        assert finding.object == "rule rayhelm/QueueGrowing"
        assert "many-to-many" in finding.evidence


def test_metrics_of_an_exporter_that_is_not_scraped_are_found(prometheus: FakePrometheus) -> None:
    prometheus.names = [name for name in prometheus.names if not name.startswith("DCGM_")]
    with report(prometheus, "queries") as found:
        (finding,) = found.findings
        assert "DCGM_" in finding.evidence
        assert "does not scrape dcgm" in finding.cause
        assert "dashboard gpu" in finding.cause
        assert "dcgmExporter.enabled=true" in finding.fix
        assert "--reset-then-reuse-values" in finding.fix
        assert '--version "$(helm get metadata gpu-operator -n gpu-operator |' in finding.fix


def test_metrics_of_cert_manager_are_only_expected_with_certificates(prometheus: FakePrometheus) -> None:
    prometheus.names = [name for name in prometheus.names if not name.startswith("certmanager_")]
    with report(prometheus, "queries") as found:
        assert found.findings == ()


def test_metrics_of_gpus_are_not_expected_without_such_gpus(prometheus: FakePrometheus) -> None:
    prometheus.names = [name for name in prometheus.names if not name.startswith(("DCGM_", "amd_", "xpum_", "gpu_"))]
    world = World(fleet())
    for node in world.answers["/api/v1/nodes"]["items"]:
        node["status"]["allocatable"] = {"cpu": "16"}
    with open_client("http://prometheus", {}, httpx.MockTransport(prometheus)) as client:
        assert world.examine("queries", prometheus=client).findings == ()


def test_query_that_prometheus_refuses_is_found(prometheus: FakePrometheus) -> None:
    query = next(query for query in list_queries() if query.user == "dashboard gpu")
    prometheus.refused = {query.text: "many-to-many matching not allowed"}
    with report(prometheus, "queries") as found:
        assert found.findings
        assert all("many-to-many" in finding.evidence for finding in found.findings)
        assert any("dashboard gpu" in finding.object for finding in found.findings)


@pytest.mark.parametrize("error", ["", "parse error"])
def test_scaled_object_whose_query_returns_nothing_is_found(prometheus: FakePrometheus, error: str) -> None:
    world, query = World(fleet()), "sum(missing_metric)"
    prometheus.refused = {query: error} if error else {}
    trigger = {"type": "prometheus", "metadata": {"query": query}}
    world.create(
        {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject",
            "metadata": {"name": "one", "namespace": "gateway"},
            "spec": {"scaleTargetRef": {"name": "gateway"}, "triggers": [{"type": "cron"}, trigger]},
        }
    )
    with open_client("http://prometheus", {}, httpx.MockTransport(prometheus)) as client:
        (finding,) = world.examine("scaler-series", prometheus=client).findings
    assert finding.object == "ScaledObject gateway/one"
    assert query in finding.evidence
    assert (error or "returns no series") in finding.evidence


def test_prometheus_that_does_not_answer_is_a_finding_and_ends_no_other_check() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused")

    asked = CHECKS[:3]
    with report(refuse, *asked, "quota") as found:
        states = {result.id: result.state for result in found.checks}
        assert states == dict.fromkeys(asked, CheckState.not_checked) | {"quota": CheckState.ok}
        assert {finding.check for finding in found.findings} == set(asked)
        assert all("does not answer" in finding.evidence for finding in found.findings)
        assert all("port-forward" in finding.fix for finding in found.findings)


def test_queries_of_dashboards_and_alerts_are_valid_when_sent() -> None:
    texts = dict.fromkeys(query.text for query in list_queries())
    assert not [text for text in texts if re.search(r"\$[^0-9]", text) or isinstance(parse(text), str)]
