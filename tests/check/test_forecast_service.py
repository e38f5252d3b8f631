"""The forecast of a RayService, compared with every observed edit."""

from functools import cache
from typing import Any

import pytest

from cluster.edits.cases import load_base_values
from cluster.edits.observation import Observation, list_versions, load_observations
from cluster.edits.patch import apply_patch
from cluster.edits.replay import replay
from rayhelm.check.forecast.service import Forecast, Surroundings, forecast_service, install
from rayhelm.deploy.charts.helm import template

VERSIONS = list_versions()


@cache
def render_base(kuberay: str) -> dict[str, Any]:
    objects = template("ray-service", "edited", "default", load_base_values(kuberay))
    return next(item for item in objects if item["kind"] == "RayService")


@pytest.mark.parametrize("version", VERSIONS)
def test_forecast_agrees_with_every_observed_edit(version: str) -> None:
    table = load_observations(version)
    assert table
    assert len(table.rows) == 124
    wrong = {}
    for row in table.rows:
        outcome, forecast = replay(row, render_base(version), version, row.other_version)
        observed = row.observed.outcome if isinstance(row.observed, Observation) else row.status_shows
        if outcome != observed:
            wrong[row.id] = (outcome, observed, forecast.reasons)
    assert wrong == {}


def test_versions_differ_on_the_edits_that_the_documentation_names() -> None:
    first, second = (
        {
            row.id: row.observed.outcome if isinstance(row.observed, Observation) else row.status_shows
            for row in table.rows
        }
        for version in VERSIONS
        if (table := load_observations(version))
    )
    differing = {id for id, outcome in first.items() if outcome != second[id]}
    assert differing == {
        "cluster-suspend-and-label",
        "cluster-suspend-back",
        "cluster-suspend-false-added",
        "cluster-suspend-false-removed",
        "cluster-suspend-true",
        "field-unknown",
        "incremental-gate-off",
        "spec-suspend",
        "suspend-midway",
    }


def edit_service(kuberay: str, patch: dict[str, Any] | list[dict[str, Any]], **where: Any) -> Forecast:
    base = render_base(kuberay)
    return forecast_service(install(base, kuberay), apply_patch(base, patch), Surroundings(kuberay, **where))[0]


INCREMENTAL = {
    "spec": {
        "upgradeStrategy": {
            "type": "NewClusterWithIncrementalUpgrade",
            "clusterUpgradeOptions": {"gatewayClassName": "any", "stepSizePercent": 25, "intervalSeconds": 10},
        },
        "rayClusterConfig": {"rayVersion": "2.60.1"},
    }
}


@pytest.mark.parametrize(
    ("kuberay", "where", "effect"),
    [
        ("1.6.2", {}, "held back"),
        ("1.6.2", {"incremental": True}, "new cluster"),
        ("1.7.0", {}, "new cluster"),
        ("1.7.0", {"incremental": False}, "held back"),
        ("1.7.0", {"has_gateway": False}, "new cluster, waiting"),
    ],
)
def test_incremental_upgrade_depends_on_gate_and_gateway(kuberay: str, where: dict[str, bool], effect: str) -> None:
    found = edit_service(kuberay, INCREMENTAL, **where)
    assert found.effect == effect
    assert found.reasons or effect == "new cluster"


def test_held_edit_takes_effect_when_the_strategy_changes() -> None:
    base, where = render_base("1.7.0"), Surroundings("1.7.0")
    held = apply_patch(
        base, {"spec": {"upgradeStrategy": {"type": "None"}, "rayClusterConfig": {"rayVersion": "2.60.1"}}}
    )
    found, live = forecast_service(install(base, "1.7.0"), held, where)
    assert found.effect == "held back"
    released = apply_patch(held, {"spec": {"upgradeStrategy": {"type": "NewCluster"}}})
    assert forecast_service(live, released, where)[0].effect == "new cluster"


def test_bounds_are_listed_for_the_next_switch() -> None:
    path = "/spec/rayClusterConfig/workerGroupSpecs/0/maxReplicas"
    found = edit_service("1.7.0", [{"op": "replace", "path": path, "value": 9}])
    assert found.effect == "nothing"
    assert found.at_next_switch == ("spec.rayClusterConfig.*.maxReplicas",)


def test_operator_of_another_version_absorbs_a_pending_edit() -> None:
    base = render_base("1.6.2")
    edited = apply_patch(base, {"spec": {"rayClusterConfig": {"rayVersion": "2.60.1"}}})
    found, live = forecast_service(install(base, "1.6.2"), edited, Surroundings("1.7.0", restarts=True))
    assert found.effect == "in place"
    assert "overwrites" in found.reasons[0]
    assert forecast_service(live, edited, Surroundings("1.7.0"))[0].effect == "nothing"


def test_unknown_operator_version_has_the_forecast_of_the_closest() -> None:
    base = render_base("1.6.2")
    edited = apply_patch(base, {"spec": {"rayClusterConfig": {"rayVersion": "2.60.1"}}})
    for version in ("1.5.1", "1.6.9", "1.8.0"):
        found, _ = forecast_service(install(base, version), edited, Surroundings(version))
        assert found.effect == "new cluster"


@pytest.mark.parametrize(
    ("value", "effect"),
    [
        ({"name": "EDITED", "value": "1"}, "new cluster"),
        ({"name": "CUDA_CACHE_PATH", "value": "/cache/cuda"}, "nothing"),
    ],
)
def test_manifests_compare_by_what_kuberay_reads(value: dict[str, str], effect: str) -> None:
    path = "/spec/rayClusterConfig/headGroupSpec/template/spec/containers/0/env/0"
    assert edit_service("1.7.0", [{"op": "replace", "path": path, "value": value}]).effect == effect


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"rayClusterConfig": {"headGroupSpec": {"rayStartParams": {"dashboard-host": "127.0.0.1"}}}}, "dashboard"),
        ({"rayClusterConfig": {"headGroupSpec": {"rayStartParams": {"include-dashboard": "false"}}}}, "dashboard"),
        ({"rayClusterConfig": {"rayVersion": "2.60.1"}, "serveConfigV2": "applications: [chat"}, "not YAML"),
        ({"rayClusterConfig": {"rayVersion": "2.60.1", "upgradeStrategy": {"type": "Recreate"}}}, "upgradeStrategy"),
        ({"rayClusterConfig": {"headGroupSpec": {"serviceType": "NodePort"}}}, "serviceType"),
    ],
)
def test_new_cluster_waits_for_a_reason_that_is_named(spec: dict[str, Any], words: str) -> None:
    found = edit_service("1.7.0", {"spec": spec})
    assert found.effect == "new cluster, waiting"
    assert words in found.reasons[0]


def test_environment_value_is_no_quantity() -> None:
    path = "/spec/rayClusterConfig/headGroupSpec/template/spec/containers/0/env/-"
    base = apply_patch(render_base("1.7.0"), [{"op": "add", "path": path, "value": {"name": "N", "value": "1"}}])
    edited = apply_patch(
        base, [{"op": "replace", "path": path.replace("-", "0"), "value": {"name": "N", "value": "1.0"}}]
    )
    assert forecast_service(install(base, "1.7.0"), edited, Surroundings("1.7.0"))[0].effect == "new cluster"
