"""What KubeRay was seen to do with edits, as data."""

import pytest
from pydantic import ValidationError

from rayhelm.forecast.observed import Row, Step, Table, observed_edits

KUBERAY = "1.6.2"


@pytest.fixture(scope="module")
def table() -> Table:
    found = observed_edits(KUBERAY)
    assert found
    return found


def test_many_edits_were_observed(table: Table) -> None:
    assert len([row for row in table.rows if row.observed != "no"]) >= 25


def test_edits_of_every_outcome_are_there(table: Table) -> None:
    outcomes = {row.observed.outcome for row in table.rows if row.observed != "no"}
    assert {"nothing", "serve config", "in place", "beside", "new cluster", "invalid", "refused"} <= outcomes


def test_a_row_has_a_name_of_its_own_and_the_operators_version(table: Table) -> None:
    assert len({row.id for row in table.rows}) == len(table.rows)
    assert {row.kuberay for row in table.rows} == {table.kuberay} == {KUBERAY}


def test_a_row_that_an_operator_of_another_version_makes_says_which_and_how(table: Table) -> None:
    others = [row for row in table.rows if row.operator in ("other takes over", "takes over from other")]
    assert others
    for row in others:
        assert "KUBERAY_OPERATOR_OTHER" in row.how
        assert row.other or row.observed == "no"


def test_an_operator_that_nobody_looked_at_has_no_table() -> None:
    assert observed_edits("0.0.1") is None


def test_a_row_that_was_not_observed_without_a_reason_is_refused() -> None:
    with pytest.raises(ValidationError, match="gives the reason"):
        Row(id="image", edit="another image", kuberay=KUBERAY, observed="no")


def test_a_step_that_does_nothing_or_two_things_is_refused() -> None:
    with pytest.raises(ValidationError, match="one of patch, scale and ray"):
        Step()
    with pytest.raises(ValidationError, match="one of patch, scale and ray"):
        Step(patch={"spec": {}}, scale={"gpu": 2})
