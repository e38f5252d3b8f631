"""Every example, field by field, on the API server: of the charts' tests, and of the reference fleets."""

import re
from collections import Counter
from collections.abc import Iterator

import pytest
import yaml

from charts.kit import EXAMPLES
from cluster.kit.cluster import Cluster, Object
from cluster.kit.examples import rendered, values_of
from rayhelm.live.cluster.kubectl import KubectlError

UNKNOWN = {"spec.suspend", "spec.rayClusterConfig.workerGroupSpecs[0].priority"}
"""Fields of KubeRay 1.7.0 that an older one does not know, as the API server calls them."""


@pytest.fixture(scope="module")
def elsewhere(cluster: Cluster) -> Iterator[str]:
    """Where aliases live."""
    with cluster.namespace() as name:
        yield name


@pytest.fixture(scope="module")
def known(cluster: Cluster) -> set[tuple[str, str]]:
    """Versions and kinds that the API server has."""
    lines = cluster.kubectl("api-resources", "--no-headers").splitlines()
    return {(line.split()[-3], line.split()[-1]) for line in lines}


@pytest.fixture(scope="module")
def room(cluster: Cluster) -> Iterator[str]:
    """A namespace for what is never made in earnest."""
    with cluster.namespace() as name:
        yield name


def kind_of(item: Object) -> tuple[str, str]:
    return item["apiVersion"], item["kind"]


def try_on(cluster: Cluster, objects: list[Object]) -> list[str]:
    """Everything up to the write itself. Raises KubectlError for a field that is unknown, or written twice."""
    options = ["--dry-run=server", "--validate=strict", "--filename=-"]
    return cluster.kubectl("apply", *options, text=yaml.safe_dump_all(objects)).splitlines()


@pytest.mark.parametrize("name", EXAMPLES)
def test_api_server_accepts_every_field_of(
    name: str, cluster: Cluster, room: str, elsewhere: str, known: set[tuple[str, str]]
) -> None:
    objects = rendered(name, values_of(name, cluster.place.kuberay, elsewhere), room)
    tried = [item for item in objects if kind_of(item) in known]
    said = try_on(cluster, tried)
    assert len(said) == len(tried) > 5
    assert all(line.endswith("created (server dry run)") for line in said)


def test_nothing_of_the_examples_is_left_out_for_want_of_a_crd(
    cluster: Cluster, room: str, elsewhere: str, known: set[tuple[str, str]]
) -> None:
    kinds = Counter(
        kind_of(item)
        for name in EXAMPLES
        for item in rendered(name, values_of(name, cluster.place.kuberay, elsewhere), room)
    )
    if unknown := {kind: count for kind, count in kinds.items() if kind not in known}:
        named = ", ".join(f"{count} {kind} of {version}" for (version, kind), count in sorted(unknown.items()))
        pytest.skip(f"not tried, for the API server has no such kind: {named}")


def test_unknown_field_is_refused(cluster: Cluster, room: str, elsewhere: str) -> None:
    objects = rendered("minimal", values_of("minimal", cluster.place.kuberay, elsewhere), room)
    (service,) = (item for item in objects if item["kind"] == "RayService")
    service["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]["replica"] = 1
    with pytest.raises(KubectlError, match=r'unknown field "spec.rayClusterConfig.workerGroupSpecs\[0\].replica"'):
        try_on(cluster, [service])


def test_fields_of_a_newer_kuberay_are_those_that_the_chart_keeps_from_an_older_one(
    cluster: Cluster, room: str, elsewhere: str, known: set[tuple[str, str]]
) -> None:
    objects = rendered("everything", values_of("everything", "1.7.0", elsewhere), room)
    try:
        try_on(cluster, [item for item in objects if kind_of(item) in known])
        unknown = set()
    except KubectlError as error:
        unknown = set(re.findall(r'unknown field "([^"]+)"', str(error)))
    assert unknown == (UNKNOWN if cluster.place.kuberay < "1.7.0" else set())
