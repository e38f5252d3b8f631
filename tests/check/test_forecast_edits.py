"""The observed edits, the table made from them, and the forecast that reads it."""

from typing import Any

import pytest
from pydantic import ValidationError

from cluster.edits.compact import FILE, build_table, render_table
from cluster.edits.observation import (
    EditStep,
    ObservationTable,
    ObservedEdit,
    list_versions,
    load_observations,
)
from rayhelm.check.forecast.edits import are_equal, generalize_path

VERSIONS = list_versions()


def load(version: str) -> ObservationTable:
    table = load_observations(version)
    assert table
    return table


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
