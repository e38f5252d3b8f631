"""Make edits of a RayService with the real operator, and compare with `edits/observed/<version>.yaml`.

Every SAMPLE-th of them here, and all with RAYHELM_VERIFY_DIFF=1 (`make verify-diff`). RAYHELM_WRITE_EDITS=1 makes all
and writes that file. Edits with an operator of another version need its program in
KUBERAY_OPERATOR_OTHER.
"""

import os
from pathlib import Path

import pytest

from cluster.edits.cases import load_base_values, load_cases
from cluster.edits.observation import EditCase, Observation, ObservationTable, ObservedEdit, load_observations
from cluster.edits.run import EditResults, run
from cluster.edits.table import NEEDS_OTHER, write_table
from cluster.kit.cluster import Cluster
from cluster.kit.place import Testbed
from testbed.control_plane.programs import operator_version

EDITS = load_cases()
SAMPLE = 5
MADE = EDITS if {"RAYHELM_VERIFY_DIFF", "RAYHELM_WRITE_EDITS"} & os.environ.keys() else EDITS[::SAMPLE]


def other() -> Path | None:
    """The program of an operator of another version."""
    named = os.environ.get("KUBERAY_OPERATOR_OTHER", "")
    if named and not Path(named).is_file():
        pytest.fail(f"KUBERAY_OPERATOR_OTHER={named}: there is no such program", pytrace=False)
    return Path(named) if named else None


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest, cluster: Cluster) -> EditResults:
    """Results of the selected edits, which are made at the same time."""
    selected = {
        item.callspec.params["edit"].id
        for item in request.session.items
        if item.path == request.path and hasattr(item, "callspec") and "edit" in item.callspec.params
    }
    if (program := other()) and operator_version(program) == cluster.place.kuberay:
        pytest.fail(f"KUBERAY_OPERATOR_OTHER is KubeRay {cluster.place.kuberay} too", pytrace=False)
    found = run([edit for edit in EDITS if edit.id in selected], cluster, program)
    if os.environ.get("RAYHELM_WRITE_EDITS"):
        write_table(EDITS, found, cluster.place, program)
    return found


@pytest.fixture(scope="module")
def table(place: Testbed, results: EditResults) -> ObservationTable:
    load_observations.cache_clear()
    found = load_observations(place.kuberay)
    if found is None:
        pytest.skip(f"no observations of KubeRay {place.kuberay}: RAYHELM_WRITE_EDITS=1 writes them")
    return found


@pytest.mark.timeout(3600)  # the first test waits for all edits
@pytest.mark.parametrize("edit", MADE, ids=lambda edit: edit.id)
def test_edit_has_the_observed_effect(edit: EditCase, results: EditResults, table: ObservationTable) -> None:
    row = row_of(edit, table)
    if edit.operator in NEEDS_OTHER and not (program := other()):
        assert "KUBERAY_OPERATOR_OTHER" in row.command
        assert row.observed != "no" or row.reason
        return
    if edit.operator in NEEDS_OTHER:
        assert program
        assert operator_version(program) == row.other_version, f"the row was observed with KubeRay {row.other_version}"
    found = results[edit.id]
    if isinstance(found, Exception):
        raise found
    if row.status_shows:
        assert found.outcome == row.status_shows, row.reason
        return
    assert row.observed != "no", row.reason
    compared = set(Observation.model_fields).difference(edit.varies)
    assert found.model_dump(include=compared) == row.observed.model_dump(include=compared)


def test_observations_have_exactly_the_edits_of_the_cases(table: ObservationTable, place: Testbed) -> None:
    assert [EditCase.model_validate(row.model_dump(include=set(EditCase.model_fields))) for row in table.rows] == list(
        EDITS
    )
    assert table.values == load_base_values(place.kuberay)


def row_of(edit: EditCase, table: ObservationTable) -> ObservedEdit:
    found = [row for row in table.rows if row.id == edit.id]
    assert found, f"no observation of {edit.id}: RAYHELM_WRITE_EDITS=1 writes it"
    return found[0]
