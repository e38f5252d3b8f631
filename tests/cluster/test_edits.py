"""What KubeRay does with each edit of a RayService that is Ready, against what the table says that it does.

The table, `rayhelm/data/kuberay/edits-<version>.yaml`, is written by the same test with RAYHELM_WRITE_EDITS=1. Rows in
which an operator of another version takes over are observed where KUBERAY_OPERATOR_OTHER names its program.
"""

import os
from pathlib import Path

import pytest

from cluster.edits.cases import base_values, edits
from cluster.edits.run import Results, run
from cluster.edits.table import NEEDS_OTHER, written
from cluster.kit.cluster import Cluster
from cluster.kit.place import Testbed
from rayhelm.forecast.observed import Edit, Observed, Row, Table, observed_edits
from testbed.control_plane.programs import operator_version

EDITS = edits()


def other() -> Path | None:
    """The program of an operator of another version."""
    named = os.environ.get("KUBERAY_OPERATOR_OTHER", "")
    if named and not Path(named).is_file():
        pytest.fail(f"KUBERAY_OPERATOR_OTHER={named}: there is no such program", pytrace=False)
    return Path(named) if named else None


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest, cluster: Cluster) -> Results:
    """Of the edits that this run asks for, all made side by side."""
    asked = {
        item.callspec.params["edit"].id
        for item in request.session.items
        if item.path == request.path and hasattr(item, "callspec") and "edit" in item.callspec.params
    }
    if (program := other()) and operator_version(program) == cluster.place.kuberay:
        pytest.fail(f"KUBERAY_OPERATOR_OTHER is KubeRay {cluster.place.kuberay} too", pytrace=False)
    found = run([edit for edit in EDITS if edit.id in asked], cluster, program)
    if os.environ.get("RAYHELM_WRITE_EDITS"):
        written(EDITS, found, cluster.place, program)
    return found


@pytest.fixture(scope="module")
def table(place: Testbed, results: Results) -> Table:
    observed_edits.cache_clear()
    found = observed_edits(place.kuberay)
    if found is None:
        pytest.skip(f"no edits were observed with KubeRay {place.kuberay}: RAYHELM_WRITE_EDITS=1 writes them down")
    return found


@pytest.mark.timeout(1800)  # the first one waits for all
@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.id)
def test_an_edit_does_what_the_table_says(edit: Edit, results: Results, table: Table) -> None:
    row = row_of(edit, table)
    if edit.operator in NEEDS_OTHER and not (program := other()):
        assert "KUBERAY_OPERATOR_OTHER" in row.how
        assert row.observed != "no" or row.reason
        return
    if edit.operator in NEEDS_OTHER:
        assert program
        assert operator_version(program) == row.other, f"the row was observed with KubeRay {row.other}"
    found = results[edit.id]
    if isinstance(found, Exception):
        raise found
    assert row.observed != "no", row.reason
    compared = set(Observed.model_fields).difference(edit.by_chance)
    assert found.model_dump(include=compared) == row.observed.model_dump(include=compared)


def test_the_table_holds_the_edits_that_are_made_here_and_no_others(table: Table, place: Testbed) -> None:
    assert [Edit.model_validate(row.model_dump(include=set(Edit.model_fields))) for row in table.rows] == list(EDITS)
    assert table.values == base_values(place.kuberay)


def row_of(edit: Edit, table: Table) -> Row:
    found = [row for row in table.rows if row.id == edit.id]
    assert found, f"the table has no {edit.id}: RAYHELM_WRITE_EDITS=1 writes it down"
    return found[0]
