"""`rayhelm diff --live` reads a RayService of a real API server and the real operator."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from cluster.edits.cases import load_base_values
from cluster.edits.template import build_nodes
from cluster.kit.cluster import Cluster
from cluster.kit.helm import Helm
from cluster.kit.wait import eventually
from rayhelm.check.diff.compare import compare_sides
from rayhelm.check.diff.read_live import read_live
from rayhelm.check.diff.report import DiffReport
from rayhelm.check.diff.side import RAY_SERVICE, Side, SideRelease
from rayhelm.live.cluster.reader import ClusterReader, connect

NAME = "edited"


@pytest.fixture(scope="module")
def release(cluster: Cluster) -> Iterator[SideRelease]:
    """An installed release that is Ready."""
    values = load_base_values(cluster.place.kuberay)
    helm = Helm.of_major("4", cluster.place.kubeconfig)
    with cluster.machines(build_nodes(1)), cluster.namespace() as namespace:
        helm.install(RAY_SERVICE, NAME, namespace, values)
        eventually(lambda: cluster.is_ready("RayService", NAME, namespace), "the RayService to be Ready")
        yield SideRelease(RAY_SERVICE, NAME, namespace, "main", values)


@pytest.fixture(scope="module")
def reader(cluster: Cluster) -> ClusterReader:
    return connect(kubeconfig=cluster.place.kubeconfig)


def compare(release: SideRelease, reader: ClusterReader, kuberay: str) -> DiffReport:
    key = ("main", release.chart, release.namespace, release.name)
    new = Side("values", "", {key: release}, {"main": kuberay})
    return compare_sides(read_live(reader, new, "main"), new)


def test_release_that_is_installed_has_no_difference(
    release: SideRelease, reader: ClusterReader, cluster: Cluster
) -> None:
    report = compare(release, reader, cluster.place.kuberay)
    assert (report.releases, report.unchanged) == ((), 1)


def test_release_with_another_environment_gets_a_new_cluster(
    release: SideRelease, reader: ClusterReader, cluster: Cluster
) -> None:
    values = {**(release.values or {}), "head": {"env": {"EDITED": "1"}}}
    (found,) = compare(replace(release, values=values), reader, cluster.place.kuberay).releases
    assert found.effect == "new cluster"
    assert found.changed
    assert [path for path in found.changed if ".env" not in path] == []


def test_release_for_another_operator_is_overwritten_in_place(release: SideRelease, reader: ClusterReader) -> None:
    (found,) = compare(release, reader, "1.9.0").releases
    assert found.effect == "in place"
    assert "overwrites" in found.reasons[0]
