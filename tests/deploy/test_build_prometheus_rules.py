"""Rules of a fleet: what they know of each model, and which models have no price."""

from pathlib import Path

import pytest

from rayhelm.deploy.compose.prometheus_rules import list_models_without_price
from rayhelm.deploy.render.files import render_fleet
from rayhelm.deploy.values.platform import PlatformValues
from rayhelm.deploy.values.platform.prometheus_rules import PrometheusRules
from rayhelm.errors import FleetError

VALUES = Path(__file__).parents[2] / "values"
PROMETHEUS = """
    prometheus:
      url: http://prometheus-operated.monitoring:9090
      rules: ConfigMap
      runbookUrl: https://git.example.com/runbooks
"""


def rules_of(path: Path) -> PrometheusRules:
    (values,) = (each.values for each in render_fleet(path).releases if isinstance(each.values, PlatformValues))
    return values.prometheus_rules


def fleet_with(folder: Path, fleet: str, text: str) -> Path:
    """A reference fleet with keys added to its cluster."""
    path = folder / "fleet.yaml"
    path.write_text((VALUES / fleet / "fleet.yaml").read_text().replace("  main:\n", f"  main:{text}", 1))
    return path


def test_fleet_without_prometheus_has_no_rules() -> None:
    assert rules_of(VALUES / "single-gpu/fleet.yaml").kind == "None"


def test_replica_price_times_replicas_is_the_planned_price() -> None:
    path = VALUES / "multi-node/fleet.yaml"
    planned = render_fleet(path).plan.models
    for name, model in rules_of(path).models.items():
        assert model.replica_dollars_per_hour is not None
        price = model.replica_dollars_per_hour * planned[name].replicas
        assert price == pytest.approx(planned[name].price_per_hour)


def test_price_of_a_part_of_a_gpu_is_its_share_of_the_price(tmp_path: Path) -> None:
    path = fleet_with(tmp_path, "shared-gpus", PROMETHEUS)
    prices = rules_of(path).gpu_prices
    assert prices["bank-chat"]["h100-mig"] == pytest.approx(6.88 / 2)
    assert prices["city-chat"]["l4-shared"] == pytest.approx(0.8048 / 2)
    # Two models share one instance of 7.
    planned = render_fleet(path).plan.models
    both = planned["clinic-search"].price_per_hour, planned["clinic-rerank"].price_per_hour
    assert both[0]
    assert both[1]
    assert prices["search"]["a100-mig-1g-10gb"] * 0.9 == pytest.approx(sum(filter(None, both)), rel=1e-4)


def test_worker_group_of_each_unlike_host_has_a_price(tmp_path: Path) -> None:
    path = fleet_with(tmp_path, "two-workstations", PROMETHEUS)
    path.write_text(path.read_text().replace("network: ethernet-1g", "network: ethernet-1g\n    price: 0.5 USD/h"))
    assert rules_of(path).gpu_prices == {"qwen3-32b": {"lab-a5000": 0.5, "lab-a4000": 0.5}}


def test_objectives_come_from_the_fleet() -> None:
    slo = rules_of(VALUES / "multi-node/fleet.yaml").models["llama-405b"].slo
    assert (slo.ttft_seconds, slo.tpot_seconds, slo.latency_share, slo.availability) == (3, 0.1, 0.95, 0.999)


def test_model_without_price_has_no_cost_and_says_why(tmp_path: Path) -> None:
    path = fleet_with(tmp_path, "homelab", PROMETHEUS)
    rendered, rules = render_fleet(path), rules_of(path)
    unpriced = {name for name, model in rendered.plan.models.items() if model.price_per_hour is None}
    assert unpriced
    assert {name for name, model in rules.models.items() if model.replica_dollars_per_hour is None} == unpriced
    messages = list(list_models_without_price(rendered.plan))
    assert len(messages) == len(unpriced)
    assert all("set `price` of the pool" in message for message in messages)


def test_rules_without_runbook_url_are_refused_with_a_fix(tmp_path: Path) -> None:
    path = fleet_with(
        tmp_path, "homelab", PROMETHEUS.replace("      runbookUrl: https://git.example.com/runbooks\n", "")
    )
    with pytest.raises(FleetError, match="`rules` without `runbookUrl`") as caught:
        render_fleet(path)
    assert "runbookUrl: 'https://" in str(caught.value)


def test_custom_application_names_its_deployment(tmp_path: Path) -> None:
    rules = rules_of(fleet_with(tmp_path, "homelab", PROMETHEUS))
    assert rules.models["tts"].deployment
    assert rules.models["llm"].deployment == ""


def test_rules_know_the_namespace_of_redis() -> None:
    assert rules_of(VALUES / "multi-node/fleet.yaml").redis_namespaces == ["assistants-state", "research-state"]
