"""The forecast of random edits, compared with what the real operator did (`make verify-diff`)."""

import pytest

from check.test_forecast_service import render_base
from cluster.edits.random_edits import generate_edits
from cluster.edits.random_result import SEED, RandomResult, hash_inputs, list_random_edits, read_result
from cluster.edits.replay import replay


@pytest.fixture(scope="module")
def result() -> RandomResult:
    return read_result()


def test_random_edits_depend_on_the_seed_only() -> None:
    assert generate_edits(SEED, 9) == generate_edits(SEED, 20)[:9]
    assert generate_edits(SEED, 9) != generate_edits(SEED + 1, 9)


def test_result_belongs_to_the_edits_of_the_generator(result: RandomResult) -> None:
    edits = list_random_edits()
    assert result.seed == SEED
    assert set(result.outcomes) == {edit.id for edit in edits}
    assert result.inputs == hash_inputs(edits, result.kuberay), "make verify-diff"


def test_operator_was_asked_about_more_than_sixty_edits_with_many_outcomes(result: RandomResult) -> None:
    assert len(result.outcomes) > 60
    outcomes = {each.outcome for each in result.outcomes.values()}
    assert {"nothing", "beside", "serve config", "in place", "new cluster", "invalid"} <= outcomes


def test_forecast_agrees_with_the_operator_on_every_random_edit(result: RandomResult) -> None:
    wrong = {}
    for edit in list_random_edits():
        forecast, detail = replay(edit, render_base(result.kuberay), result.kuberay)
        if forecast != result.outcomes[edit.id].outcome:
            wrong[edit.id] = (forecast, result.outcomes[edit.id].outcome, detail.reasons)
    assert wrong == {}


def test_new_clusters_need_gpus_of_two_clusters(result: RandomResult) -> None:
    """What the forecast counts: the old and the new cluster run at the same time."""
    edits = {edit.id: edit for edit in list_random_edits() if not edit.before and edit.operator == "runs"}
    switched = [each for id, each in result.outcomes.items() if id in edits and each.outcome == "new cluster"]
    assert switched
    assert {each.largest_clusters for each in switched} == {2}
    assert all(each.largest_gpus >= 2 for each in switched)
