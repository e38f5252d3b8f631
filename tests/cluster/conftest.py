"""Tests on a real API server: a testbed of one's own, or the one that KUBECONFIG names.

A testbed is any cluster that `ci/control-plane up` made or joined; it carries a mark, and no other cluster is touched.
Where KUBECONFIG names none, one is started for the run, and ended with it.
"""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pytest_helm_charts.clusters import Cluster as KubeCluster

import testbed.tools
from cluster.kit.cluster import Cluster
from cluster.kit.fleets import Fleet, fleet_clusters
from cluster.kit.helm import Helm
from cluster.kit.place import Testbed, given, own, surroundings
from rayhelm.errors import RayhelmError

HERE = Path(__file__).parent
LONGEST = (
    *("edits", "releases", "whole_fleets", "control_plane", "policies", "refused", "fleets", "rehearse", "join"),
    *("resilience", "ray_service_releases", "prometheus_operator", "ray_service_half_way"),
)
"""Files that take minutes, the longest first: one that starts last leaves all processes but one without work."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.cluster)
        # A pod takes seconds on a quiet computer, but tests must also end on a loaded one.
        item.add_marker(pytest.mark.timeout(1800))
    items.sort(key=_place_in_order)
    if ours and (reason := _why_not(config)):
        for item in ours:
            item.add_marker(pytest.mark.skip(reason=reason))


def _place_in_order(item: pytest.Item) -> int:
    name = item.path.stem.removeprefix("test_")
    return LONGEST.index(name) if item.path.parent == HERE and name in LONGEST else len(LONGEST)


def _why_not(config: pytest.Config) -> str:
    """Why there can be no testbed; empty where there can."""
    if given(config):
        return ""
    lacks = testbed.tools.missing()
    return f"no testbed: `make tools` builds what is missing ({', '.join(lacks)})" if lacks else ""


@pytest.fixture(scope="session")
def place(pytestconfig: pytest.Config) -> Iterator[Testbed]:
    """The testbed."""
    # The plugin's kubectl is the one in PATH.
    os.environ["PATH"] = f"{testbed.tools.program('kubectl').parent}:{os.environ['PATH']}"
    if there := given(pytestconfig):
        with closing(there), surroundings(there.kubeconfig):
            yield there
        return
    try:
        with own() as there, closing(there), surroundings(there.kubeconfig):
            yield there
    except RayhelmError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="module")
def kube_config(place: Testbed) -> str:
    """What pytest-helm-charts connects with."""
    return str(place.kubeconfig)


@pytest.fixture(scope="module")
def cluster(place: Testbed, kube_cluster: KubeCluster) -> Cluster:
    """The API server, as an administrator."""
    assert kube_cluster.kube_client
    return Cluster(kube_cluster.kube_client, place)


@pytest.fixture(params=["4", "3"], ids=["helm4", "helm3"])
def each_helm(request: pytest.FixtureRequest, place: Testbed) -> Helm:
    """Helm 4, and Helm 3."""
    return Helm.of_major(request.param, place.kubeconfig)


@pytest.fixture
def helm(place: Testbed) -> Helm:
    """Helm 4."""
    return Helm.of_major("4", place.kubeconfig)


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace that enforces Pod Security `restricted`. It is deleted in the background."""
    with cluster.namespace() as name:
        yield name


@pytest.fixture(scope="module", params=fleet_clusters(), ids=str)
def fleet(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Fleet]:
    """Each reference fleet, in each of its clusters: its simulated machines stand, and nothing is installed."""
    fleet: Fleet = request.param
    with cluster.machines(fleet.machines()):
        yield fleet
