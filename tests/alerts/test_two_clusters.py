"""Two clusters in one Prometheus, with equal names of namespace, service and model."""

import re
from pathlib import Path

import pytest

from alerts.kit import Case, rule_files, rules_of, run_cases
from rayhelm.observe.queries import Scope, all_queries

TTFT = "ray_vllm_time_to_first_token_seconds"
OVERLAYS = {
    "a": {"prometheusRules": {"cluster": "a"}},
    "b": {
        "prometheusRules": {
            "cluster": "b",
            "models": {"llama": {"replicaDollarsPerHour": 10, "slo": {"ttftSeconds": 2}}},
            "gpuPrices": {"chat": {"gpu": 10}},
        }
    },
}


def rules_of_both() -> dict[str, str]:
    """All rules of cluster a, and the series of the plan of cluster b. The other rules of b are the same."""
    second = rule_files(OVERLAYS["b"])["rayhelm-plan.yaml"].replace("name: rayhelm-plan", "name: rayhelm-plan-b")
    return {"rayhelm-plan-b.yaml": second, **rule_files(OVERLAYS["a"])}


def series_of(cluster: str, replicas: int, late: int) -> dict[str, str]:
    """A service with replicas that each have a request, and 10 requests a minute, of which some take 1 s."""
    at = f'cluster="{cluster}"'
    found = {
        f"up{{{at},$S}}": "1x120",
        f"up{{{at},$G}}": "1x120",
        f'ray_resources{{{at},$S,rayhelm_dev_worker_group="gpu",Name="GPU",State="USED"}}': f"{replicas}x120",
        f'{TTFT}_bucket{{{at},$M,WorkerId="w",le="0.75"}}': f"0+{10 - late}x120",
        f'{TTFT}_bucket{{{at},$M,WorkerId="w",le="2.5"}}': "0+10x120",
        f'{TTFT}_bucket{{{at},$M,WorkerId="w",le="+Inf"}}': "0+10x120",
        f'{TTFT}_count{{{at},$M,WorkerId="w"}}': "0+10x120",
        f'ray_vllm_generation_tokens_total{{{at},$M,WorkerId="w"}}': "0+6000x120",
    }
    for name in "xyz"[:replicas]:
        found[f'ray_serve_deployment_replica_healthy{{{at},$E,replica="{name}"}}'] = "1x120"
        found[f'ray_serve_replica_processing_queries{{{at},$E,replica="{name}"}}'] = "1x120"
    return found


def test_recorded_series_of_two_clusters_are_not_mixed(tmp_path: Path) -> None:
    expected = {
        "rayhelm:replicas": (2, 1),
        "rayhelm:cost_usd_per_hour": (2 * 2.5, 10),
        "rayhelm:service_cost_usd_per_hour": (2 * 2.5, 10),
        "rayhelm:service_cost_idle_usd_per_hour": (0, 0),
        "rayhelm:cost_usd_per_million_output_tokens": (5 / 0.36, 10 / 0.36),
        # Cluster a has its objective at 0.75 s, and b at 2.5 s.
        'rayhelm:slo_errors:ratio1h{slo="ttft"}': (0.4, 0),
    }
    values = {
        f'{name.partition("{")[0]}{{cluster="{cluster}",{name.partition("{")[2].rstrip("}")}}}'.replace(
            ",}", "}"
        ): value
        for name, both in expected.items()
        for cluster, value in zip("ab", both, strict=True)
    }
    case = Case(
        "two clusters",
        {**series_of("a", 2, late=4), **series_of("b", 1, late=9)},
        {f"sum({name})": {"110m": float(value)} for name, value in values.items()},
    )
    run_cases(tmp_path, rules_of_both(), [case])


def test_service_that_is_missing_in_one_cluster_fires_there(tmp_path: Path) -> None:
    firing = 'count(ALERTS{{alertname="ServiceNotScraped",alertstate="firing",cluster="{}"}}) or vector(0)'
    expected = {firing.format("a"): {"60m": 0.0}, firing.format("b"): {"60m": 1.0}}
    run_cases(tmp_path, rules_of_both(), [Case("one cluster is missing", series_of("a", 2, late=0), expected)])


def test_rules_without_a_cluster_have_no_such_label() -> None:
    assert not [rule for rule in rules_of() if "cluster" in rule.get("labels", {})]


def joins_of(text: str) -> list[str]:
    return [
        labels for labels in re.findall(r"\b(?:on|ignoring) \(([^)]*)\)", text) if "cluster" not in labels.split(", ")
    ]


@pytest.mark.parametrize("name", all_queries())
def test_join_of_a_query_names_the_cluster(name: str) -> None:
    assert joins_of(all_queries()[name](Scope())) == []


def test_join_of_a_rule_names_the_cluster() -> None:
    found = {rule.get("record", rule.get("alert")): joins_of(rule["expr"]) for rule in rules_of()}
    assert {name: joins for name, joins in found.items() if joins} == {}
