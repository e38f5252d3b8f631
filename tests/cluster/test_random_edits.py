"""Random edits of a RayService: the real operator does what the forecast says.

The first edits of the seed run here. RAYHELM_VERIFY_DIFF=1 (`make verify-diff`) makes all and writes the result, which
tests/check/test_forecast_random.py compares with the forecast.
"""

import os
import time

import pytest

from cluster.edits.observation import EditCase
from cluster.edits.random_result import list_random_edits, write_result
from cluster.edits.replay import replay
from cluster.edits.run import EditResults, run
from cluster.edits.template import build_objects
from cluster.kit.cluster import Cluster, Object

FEW = 5
"""Edits of a usual run."""
WRITES = bool(os.environ.get("RAYHELM_VERIFY_DIFF"))
EDITS = list_random_edits() if WRITES else list_random_edits()[:FEW]


@pytest.fixture(scope="module")
def results(cluster: Cluster) -> EditResults:
    begun = time.monotonic()
    found = run(EDITS, cluster, None)
    if WRITES:
        write_result(EDITS, found, cluster.place, begun)
    return found


@pytest.fixture(scope="module")
def base(cluster: Cluster) -> Object:
    (service,) = [item for item in build_objects(cluster, ["edited"]) if item["kind"] == "RayService"]
    return service


@pytest.mark.timeout(3600)  # the first test waits for all edits
@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.id)
def test_operator_does_what_the_forecast_says(
    edit: EditCase, results: EditResults, base: Object, cluster: Cluster
) -> None:
    found = results[edit.id]
    if isinstance(found, Exception):
        raise found
    forecast, detail = replay(edit, base, cluster.place.kuberay)
    assert forecast == found.outcome, f"{edit.edit}: {detail}; observed {found.changed}"
