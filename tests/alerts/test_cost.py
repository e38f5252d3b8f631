"""Recorded costs: the formula of the plan, over measured replicas and tokens."""

from pathlib import Path

import pytest

from alerts.kit import Case, rule_files, rules_of, run_cases
from rayhelm.planner.placement.cost import compute_token_price

PRICE = 2.5
"""Price of a replica in the values."""
MODEL = {
    'ray_serve_deployment_replica_healthy{$E,replica="a"}': "1x120",
    'ray_serve_deployment_replica_healthy{$E,replica="b"}': "1x120",
    'ray_serve_replica_processing_queries{$E,replica="a"}': "3x120",
    'ray_serve_replica_processing_queries{$E,replica="b"}': "0x120",
    'ray_vllm_generation_tokens_total{$M,WorkerId="a"}': "0+36000x120",
    'ray_vllm_prompt_tokens_total{$M,WorkerId="a"}': "0+90000x120",
    'ray_vllm_request_success_total{$M,WorkerId="a",finished_reason="stop"}': "0+180x120",
}
"""Two replicas, one of them idle; 3 requests and 600 output tokens per second."""
FILES = ("rayhelm-plan.yaml", "rayhelm-service.yaml", "rayhelm-cost.yaml")


def evaluate(folder: Path, expected: dict[str, float], series: dict[str, str] = MODEL) -> None:
    files = {name: rule_files()[name] for name in FILES}
    run_cases(
        folder, files, [Case("cost", series, {f"sum({name})": {"110m": value} for name, value in expected.items()})]
    )


def test_cost_per_token_equals_the_formula_of_the_plan(tmp_path: Path) -> None:
    planned = compute_token_price(2 * PRICE, requests_per_second=3, output_tokens=200)
    assert planned
    evaluate(tmp_path, {"rayhelm:cost_usd_per_million_output_tokens": planned})


def test_cost_separates_replicas_without_a_request(tmp_path: Path) -> None:
    evaluate(tmp_path, {"rayhelm:cost_usd_per_hour": 2 * PRICE, "rayhelm:cost_idle_usd_per_hour": PRICE})


def test_cost_of_input_tokens_and_requests_divides_the_same_cost(tmp_path: Path) -> None:
    expected = {
        "rayhelm:cost_usd_per_million_input_tokens": 2 * PRICE / (1500 * 3600) * 1e6,
        "rayhelm:cost_usd_per_request": 2 * PRICE / (3 * 3600),
    }
    evaluate(tmp_path, expected)


def test_measured_cost_equals_the_planned_cost_at_the_planned_replicas(tmp_path: Path) -> None:
    evaluate(tmp_path, {"rayhelm:cost_usd_per_hour": 2 * PRICE, "rayhelm:plan_dollars_per_hour": 2 * PRICE})


TENANTS = {
    **MODEL,
    'ray_rayhelm_generation_tokens_total{$M,WorkerId="a",tenant="acme"}': "0+9000x120",
    'ray_rayhelm_prompt_tokens_total{$M,WorkerId="a",tenant="acme"}': "0+72000x120",
    'ray_rayhelm_generation_tokens_total{$M,WorkerId="a",tenant="search"}': "0+27000x120",
    'ray_rayhelm_prompt_tokens_total{$M,WorkerId="a",tenant="search"}': "0+18000x120",
}
"""Of 36000 + 90000 / 4 tokens in a minute, acme has 27000 and search 31500."""


def test_cost_by_tenant_divides_the_cost_by_tokens(tmp_path: Path) -> None:
    cost = "rayhelm:cost_by_tenant_usd_per_hour"
    expected = {
        f'{cost}{{tenant="acme"}}': 2 * PRICE * 27000 / 58500,
        f'{cost}{{tenant="search"}}': 2 * PRICE * 31500 / 58500,
        cost: 2 * PRICE,
    }
    evaluate(tmp_path, expected, TENANTS)


def test_tokens_that_no_tenant_has_cost_no_tenant(tmp_path: Path) -> None:
    """Half of the replicas do not count."""
    half = {name: text.replace("36000", "72000").replace("90000", "180000") for name, text in TENANTS.items()}
    evaluate(tmp_path, {"rayhelm:cost_by_tenant_usd_per_hour": PRICE}, half)


def test_cost_of_a_service_counts_gpus_without_a_replica(tmp_path: Path) -> None:
    group = '$S,rayhelm_dev_worker_group="gpu"'
    series = {
        f'ray_resources{{{group},Name="GPU",State="USED"}}': "2x120",
        f'ray_resources{{{group},Name="GPU",State="AVAILABLE"}}': "1x120",
    }
    # One replica of two has a request, and its GPU is the only one that is not idle.
    expected = {"rayhelm:service_cost_usd_per_hour": 7.5, "rayhelm:service_cost_idle_usd_per_hour": 5.0}
    evaluate(tmp_path, expected, {**MODEL, **series})


def test_cost_of_a_service_without_a_healthy_replica_is_idle(tmp_path: Path) -> None:
    series = {'ray_resources{$S,rayhelm_dev_worker_group="gpu",Name="GPU",State="USED"}': "2x120"}
    expected = {"rayhelm:service_cost_usd_per_hour": 5.0, "rayhelm:service_cost_idle_usd_per_hour": 5.0}
    evaluate(tmp_path, expected, series)


@pytest.mark.parametrize("price", [None, 0])
def test_model_has_a_price_series_only_with_a_known_price(price: float | None) -> None:
    models = {"llama": {"replicaDollarsPerHour": price}}
    found = {rule.get("record") for rule in rules_of({"prometheusRules": {"models": models}})}
    assert ("rayhelm:plan_replica_dollars_per_hour" in found) == (price is not None)
