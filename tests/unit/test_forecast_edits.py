"""The observed edits, the table made from them, and the forecast that reads it."""

from typing import Any

import pytest
from pydantic import ValidationError

from cluster.edits.compact import FILE, build_table, changed_paths, is_plain, render_table
from cluster.edits.observation import (
    EditStep,
    Observation,
    ObservationTable,
    ObservedEdit,
    list_versions,
    load_observations,
)
from rayhelm.forecast.edits import are_equal, forecast_edit, generalize_path, load_edit_table

VERSIONS = list_versions()
VALUE_DECIDES = {
    "serve-config-no-yaml": "a config that is not YAML is not sent",
    "cluster-suspend-true": "KubeRay 1.6.2 hashes `suspend`, but deletes pods in place when it is set",
    "cluster-suspend-back": "KubeRay 1.6.2 hashes `suspend`, but creates pods in place when it is removed",
    "cluster-suspend-and-label": "KubeRay 1.6.2 suspends before it compares",
    "none-to-new-cluster": "the edit makes a pending edit effective",
    "field-unknown": "the API server drops the field",
    "incremental-gate-off": "KubeRay 1.6.2 treats NewClusterWithIncrementalUpgrade as None without its feature gate",
}
"""Edits whose effect depends on more than the changed fields."""


def load(version: str) -> ObservationTable:
    table = load_observations(version)
    assert table
    return table


def plain_rows(version: str) -> list[tuple[ObservedEdit, Observation]]:
    return [
        (row, row.observed)
        for row in load(version).rows
        if isinstance(row.observed, Observation) and is_plain(row, row.observed)
    ]


def test_both_supported_versions_are_observed() -> None:
    assert VERSIONS == ["1.6.2", "1.7.0"]


@pytest.mark.parametrize("version", VERSIONS)
def test_observations_have_every_outcome(version: str) -> None:
    outcomes = {row.observed.outcome for row in load(version).rows if row.observed != "no"}
    assert {"nothing", "serve config", "in place", "beside", "new cluster", "invalid", "refused"} <= outcomes


@pytest.mark.parametrize("version", VERSIONS)
def test_observation_rows_have_unique_ids_and_the_version_of_the_table(version: str) -> None:
    table = load(version)
    assert len({row.id for row in table.rows}) == len(table.rows)
    assert {row.kuberay for row in table.rows} == {table.kuberay} == {version}


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_with_another_operator_name_its_version_and_command(version: str) -> None:
    others = [row for row in load(version).rows if row.operator in ("other takes over", "takes over from other")]
    assert others
    for row in others:
        assert "KUBERAY_OPERATOR_OTHER" in row.command
        assert row.other_version or row.observed == "no"


def test_unknown_version_has_no_observations() -> None:
    assert load_observations("0.0.1") is None


def test_row_without_observation_needs_a_reason() -> None:
    with pytest.raises(ValidationError, match="has a reason"):
        ObservedEdit(id="image", edit="another image", kuberay="1.7.0", observed="no")


def test_edit_step_is_exactly_one_action() -> None:
    with pytest.raises(ValidationError, match="one of patch, scale and ray"):
        EditStep()
    with pytest.raises(ValidationError, match="one of patch, scale and ray"):
        EditStep(patch={"spec": {}}, scale={"gpu": 2})


# -- the table of the package ---------------------------------------------------------------------------------------


def test_edit_table_is_fresh() -> None:
    assert FILE.read_text() == render_table(build_table()), "run ci/generate"


def test_edit_table_is_small() -> None:
    assert FILE.stat().st_size < 8_000


@pytest.mark.parametrize("version", VERSIONS)
def test_table_predicts_every_plain_observed_edit(version: str) -> None:
    table = load_edit_table()
    wrong = {}
    for row, observed in plain_rows(version):
        strategy = "None" if "'type': 'None'" in str(row.before) else "NewCluster"
        predicted = table.predict(changed_paths(observed), version, strategy=strategy)
        if predicted != observed.outcome and row.id not in VALUE_DECIDES:
            wrong[row.id] = (predicted, observed.outcome)
    assert wrong == {}
    assert len(plain_rows(version)) > 60


# -- the forecast ----------------------------------------------------------------------------------------------------


def ray_service(**cluster: Any) -> dict[str, Any]:
    group = {
        "groupName": "gpu",
        "maxReplicas": 2,
        "template": {"spec": {"containers": [{"name": "ray", "image": "a"}]}},
    }
    config = {"rayVersion": "2.60.0", "workerGroupSpecs": [group], **cluster}
    return {"serveConfigV2": "{}", "upgradeStrategy": {"type": "NewCluster"}, "rayClusterConfig": config}


def groups(*names: str, **change: Any) -> list[dict[str, Any]]:
    (group,) = ray_service()["rayClusterConfig"]["workerGroupSpecs"]
    return [{**group, **change, "groupName": name} for name in names]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("after", "effect", "added"),
    [
        (ray_service(), "nothing", ()),
        (ray_service(rayVersion="2.60.1"), "new cluster", ()),
        (ray_service(workerGroupSpecs=groups("gpu", maxReplicas=9)), "nothing", ()),
        (ray_service(workerGroupSpecs=groups("gpu", "more")), "in place", ("more",)),
        (ray_service(workerGroupSpecs=groups("a", "gpu")), "new cluster", ("a",)),
        (ray_service(workerGroupSpecs=groups("other")), "new cluster", ("other",)),
        ({**ray_service(), "serveConfigV2": '{"applications": []}'}, "serve config", ()),
        ({**ray_service(rayVersion="2.60.1"), "serveConfigV2": '{"applications": []}'}, "new cluster", ()),
        ({**ray_service(), "rayClusterDeletionDelaySeconds": 5}, "nothing", ()),
    ],
)
def test_forecast_edit_returns_the_strongest_effect(
    version: str, after: dict[str, Any], effect: str, added: tuple[str, ...]
) -> None:
    assert forecast_edit(ray_service(), after, version) == (effect, effect, added)


@pytest.mark.parametrize("version", VERSIONS)
def test_forecast_edit_creates_no_cluster_under_strategy_none(version: str) -> None:
    none = {"upgradeStrategy": {"type": "None"}}
    before, after = {**ray_service(), **none}, {**ray_service(rayVersion="2.60.1"), **none}
    assert forecast_edit(before, after, version) == ("nothing", "new cluster", ())


def test_forecast_edit_refuses_an_unknown_version() -> None:
    with pytest.raises(KeyError, match=r"0\.0\.1"):
        forecast_edit(ray_service(), ray_service(rayVersion="2.60.1"), "0.0.1")


@pytest.mark.parametrize(
    ("path", "change", "general"),
    [
        ("spec.rayClusterConfig.workerGroupSpecs[a]", (None, {}), "spec.rayClusterConfig.workerGroupSpecs[+]"),
        ("spec.rayClusterConfig.workerGroupSpecs[a]", ({}, None), "spec.rayClusterConfig.workerGroupSpecs[-]"),
        ("spec.rayClusterConfig.workerGroupSpecs[a].replicas", (1, 2), "spec.rayClusterConfig.*.replicas"),
        ("spec.rayClusterConfig.headGroupSpec.x.env[A.B]", (1, 2), "spec.rayClusterConfig.*.x.env[]"),
    ],
)
def test_generalize_path_removes_names(path: str, change: tuple[Any, Any], general: str) -> None:
    assert generalize_path(path, *change) == general


@pytest.mark.parametrize(
    ("old", "new", "equal"),
    [("8Gi", "8192Mi", True), ("2", "2000m", True), (4, "4", True), (None, [], True), (None, {}, False),
     ("1", "2", False), (True, 1, False), ("2.60.0", "2.60.1", False)],
)  # fmt: skip
def test_are_equal_compares_quantities_and_empty_lists(old: Any, new: Any, equal: bool) -> None:
    assert are_equal(old, new) is equal
