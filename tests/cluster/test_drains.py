"""Drains of nodes with the default values: the eviction API lets each pod go, and the scheduler finds another node."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from charts.kit import example, over
from cluster.kit.cluster import Cluster, condition
from cluster.kit.helm import Helm
from cluster.kit.small import Small
from cluster.kit.wait import PATIENCE, eventually
from testbed.nodes import cpu_nodes

PLACE = Small("drains")
EVERY_POD = ("--ignore-daemonsets", "--delete-emptydir-data", f"--timeout={PATIENCE:.0f}s")
HEAD, WORKER = {"ray.io/node-type": "head"}, {"ray.io/node-type": "worker"}
GATEWAY = {"rayhelm.dev/gateway": "gateway"}


@pytest.fixture(scope="module", autouse=True)
def _machines(cluster: Cluster) -> Iterator[None]:
    with cluster.machines([*PLACE.machines(), *cpu_nodes(3)]):
        yield


@pytest.mark.parametrize("workers", [1, 2])
def test_drains_of_all_nodes_of_a_service_end(cluster: Cluster, namespace: str, helm: Helm, workers: int) -> None:
    group = {"workerGroups": {"gpu": {"minReplicas": workers}}}
    helm.install("ray-service", "chat", namespace, PLACE.values(cluster.place, group))
    cluster.becomes_ready("chat", namespace)
    assert_drains_end(cluster, namespace, WORKER, workers)
    assert_drains_end(cluster, namespace, HEAD, 1)


def test_drains_end_when_the_spread_of_the_gateway_is_required(cluster: Cluster, namespace: str, helm: Helm) -> None:
    required = {"nodeSpread": "Required", "autoscaling": {"kind": "None"}, "replicas": 3}
    helm.install("gateway", "gateway", namespace, over(example("gateway/minimal"), required))
    assert_drains_end(cluster, namespace, GATEWAY, 3, nodes=2)


def assert_drains_end(cluster: Cluster, namespace: str, labels: dict[str, str], count: int, nodes: int = 0) -> None:
    """Drain the nodes of the pods, or the first ones, one after the other. None is schedulable before the end."""
    names = eventually(lambda: nodes_of(cluster, namespace, labels, count), f"{count} pods of {labels}")
    with uncordoned(cluster, names):
        for name in names[: nodes or len(names)]:
            cluster.kubectl("drain", name, *EVERY_POD)
            eventually(
                lambda gone=name: gone not in (nodes_of(cluster, namespace, labels, count) or [gone]),
                f"{count} pods of {labels} on other nodes than {name}",
                shows=lambda: cluster.tell(namespace),
            )


def nodes_of(cluster: Cluster, namespace: str, labels: dict[str, str], count: int) -> list[str]:
    """Return the nodes of the pods, once there are so many and all are ready."""
    pods = [pod for pod in cluster.all("Pod", namespace, labels) if "deletionTimestamp" not in pod["metadata"]]
    ready = [pod["spec"]["nodeName"] for pod in pods if condition(pod, "Ready") == "True"]
    return sorted(ready) if len(ready) == len(pods) == count else []


@contextmanager
def uncordoned(cluster: Cluster, names: list[str]) -> Iterator[None]:
    """Other tests of the file use the nodes too."""
    try:
        yield
    finally:
        cluster.kubectl("uncordon", *names)
