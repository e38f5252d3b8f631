"""Rules of chart gateway beyond the rows of data/rules/gateway.yaml."""

from typing import Any

import pytest
import yaml

from charts.each_chart import Values, chart_of
from charts.kit import HELMS, example

CHART = chart_of("gateway")


def endpoint(**fields: Any) -> Values:
    return {"models": {"llama-8b": {"versions": {"stable": {"endpoints": {"here": None, "there": fields}}}}}}


@pytest.mark.parametrize(
    "good",
    [
        endpoint(host="llm.example", peer={"namespace": "llm"}),
        {**endpoint(host="llm.example"), "networkPolicy": {"enabled": False, "reason": "x"}},
        {"networkPolicy": {"dns": {"peer": {"namespace": ""}, "cidrs": ["169.254.20.10/32"]}}},
        {"limits": {"bodyBytes": 16_777_216, "connections": 50}},
        {"limits": {"connections": 10_000}, "resources": {"limits": {"memory": "16Gi"}}},
        {"resources": {"limits": {"memory": 2_147_483_648}}},
        {"resources": {"requests": {"cpu": "500m", "memory": "512Mi"}}},
        {"image": {"tag": "latest", "digest": f"sha256:{'0' * 64}"}},
        {"autoscaling": {"kind": "None"}, "replicas": 1},
        {"models": {"llama-8b": {"path": "/v1"}}},
    ],
)
def test_valid_values_are_accepted(good: Values) -> None:
    assert CHART.broken(good) == ""


@pytest.mark.parametrize(
    ("mebibytes", "connections", "cores", "need"),
    [(1, 1000, 2, "1652Mi"), (1, 200, 2, "395Mi"), (4, 30, 2, "311Mi"), (16, 8, 2, "514Mi"), (16, 8, 4, "771Mi")],
)
def test_required_memory_counts_connections_and_threads(
    mebibytes: int, connections: int, cores: int, need: str
) -> None:
    limits = {"bodyBytes": mebibytes * 2**20, "connections": connections}
    resources = {"limits": {"cpu": str(cores), "memory": "1Mi"}}
    problem = CHART.refused("body-memory", {"limits": limits, "resources": resources})
    assert yaml.safe_load(problem.fix) == {"resources": {"limits": {"memory": need}}}


def test_models_may_share_an_application_when_bodies_are_read() -> None:
    one = example("gateway/minimal")["models"]["llama-8b"]
    other = {**one, "task": "transcribe", "path": "/audio"}
    assert CHART.broken({"tenants": {"acme": {"models": ["llama-8b", "audio"]}}, "models": {"audio": other}}) == ""


@pytest.mark.parametrize("helm", HELMS)
def test_both_helm_versions_report_the_same(helm: str) -> None:
    problem = CHART.refused("weights-sum", {"models": {"llama-8b": {"versions": {"stable": {"weight": 80}}}}}, helm)
    message = "the weights of the versions of llama-8b add up to 80, not to 100: stable 80"
    assert problem.message == f"models.llama-8b.versions: {message}"
    assert yaml.safe_load(problem.fix) == {"models": {"llama-8b": {"versions": {"stable": {"weight": 100}}}}}
