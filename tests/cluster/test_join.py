"""The add-ons on an existing cluster, as ci/kind/up starts them; and which clusters they refuse."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cluster.kit.bare import Bare, bare, cluster_of
from cluster.kit.fleets import Fleet
from cluster.kit.helm import Helm
from cluster.kit.place import NOT_OURS
from rayhelm.errors import MissingError, UsageError
from testbed.control_plane import Home, down, home, up
from testbed.control_plane.definitions import installed_by_us
from testbed.control_plane.down import alive
from testbed.control_plane.kubeconfig import with_token
from testbed.control_plane.status import status
from testbed.tools import crd_files

OURS = "namespace/rayhelm-testbed"
GATEWAYS = "gateways.gateway.networking.k8s.io"
ROLES = "clusterroles,clusterrolebindings"
GPU_NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "dgx-1"},
    "status": {"capacity": {"cpu": "8", "nvidia.com/gpu": "8"}},
}


def deployment(name: str, namespace: str, **more: Any) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": name, "image": f"example.com/{name}:1", **more}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


@pytest.fixture(scope="module")
def others() -> Iterator[Bare]:
    """A cluster that others use, with what kind brings in one of its namespaces."""
    with bare("others") as cluster:
        cluster.apply(deployment("coredns", "kube-system"))
        yield cluster


@pytest.fixture
def place() -> Iterator[Home]:
    """Where a testbed would keep what it has."""
    place = home(f"joins-{os.getpid()}")
    yield place
    down(place)


def join(place: Home, others: Bare, *, anyway: bool = False) -> list[str]:
    """What is said on the way."""
    lines: list[str] = []
    up(place, join=others.kubeconfig, anyway=anyway, say=lines.append)
    return lines


@contextmanager
def having(others: Bare, *objects: dict[str, Any]) -> Iterator[None]:
    others.apply(*objects)
    try:
        yield
    finally:
        others.delete(*objects)


def is_untouched(place: Home, others: Bare) -> bool:
    return not place.folder.exists() and not alive(place) and OURS not in others.names("namespaces")


# -- refused ---------------------------------------------------------------------------------------------------------


def test_join_refuses_a_cluster_with_gpus(place: Home, others: Bare) -> None:
    with having(others, GPU_NODE):
        gpus = json.dumps({"status": GPU_NODE["status"]})
        others.kubectl("patch", "node", "dgx-1", "--subresource=status", f"--patch={gpus}")
        with pytest.raises(UsageError, match=r"node dgx-1 has nvidia.com/gpu[^$]*--anyway"):
            join(place, others)
        assert is_untouched(place, others)


def test_join_refuses_a_cluster_with_kuberay(place: Home, others: Bare) -> None:
    (crd,) = [file for file in crd_files("kuberay") if file.name.endswith("_rayservices.yaml")]
    try:
        others.kubectl("create", f"--filename={crd}")
        with pytest.raises(UsageError, match=r"KubeRay is installed: no testbed has created CRD rayservices.ray.io"):
            join(place, others)
        assert is_untouched(place, others)
    finally:
        others.kubectl("delete", f"--filename={crd}")


def test_join_refuses_a_cluster_with_other_workloads(place: Home, others: Bare) -> None:
    with having(others, deployment("web", "default")):
        with pytest.raises(UsageError, match=r"  - Deployment web in default\n"):
            join(place, others)
        assert is_untouched(place, others)


def test_join_refuses_a_user_without_all_rights(place: Home, others: Bare, tmp_path: Path) -> None:
    token = others.kubectl("create", "token", "default").strip()
    kubeconfig = with_token(tmp_path / "kubeconfig", others.kubeconfig, "default", token)
    with pytest.raises(MissingError, match="is not an administrator"):
        up(place, join=kubeconfig, say=print)
    assert is_untouched(place, others)


# -- joined ----------------------------------------------------------------------------------------------------------


def test_service_becomes_ready_on_a_joined_cluster_and_down_keeps_only_crds(place: Home, others: Bare) -> None:
    before = others.names(ROLES)
    (gateways,) = [file for file in crd_files("gateway-api") if file.name.endswith("_gateways.yaml")]
    others.kubectl("create", f"--filename={gateways}")
    said = join(place, others)
    assert f"not installed: CRD {GATEWAYS}: the cluster has one that others installed" in said[0]
    assert GATEWAYS not in installed_by_us(others.kubectl)
    assert [state.state for state in status(place)] == ["ready"] * 4
    fleet = Fleet("single-gpu", "main")
    with pytest.raises(UsageError, match=f"it belongs to the testbed in {place.folder}"):
        join(home(f"joins-too-{os.getpid()}"), others)
    with cluster_of(place) as cluster:
        with pytest.raises(pytest.skip.Exception, match=NOT_OURS):
            cluster.place.must_be_whole()
        cluster.apply(*fleet.machines())
        with cluster.namespace() as namespace:
            (service,) = fleet.services
            values = fleet.values(service, kuberay=cluster.place.kuberay)
            Helm.of_major("4", place.kubeconfig).install("ray-service", service, namespace, values)
            cluster.becomes_ready(service, namespace)
    lines: list[str] = []
    assert down(place, lines.append) >= 3
    assert len(lines) == 1, lines
    assert re.match(r"\d+ CRDs stay in the joined cluster: ", lines[0])
    assert not alive(place)
    assert not place.folder.exists()
    assert OURS not in others.names("namespaces")
    assert others.names(ROLES) == before
    assert not others.names("nodes,storageclasses")
    assert "customresourcedefinition.apiextensions.k8s.io/rayservices.ray.io" in others.names("crd")
    # Deletions end before the operator does: only it removes its finalizers.
    assert not others.names("rayservices,rayclusters", "--all-namespaces")
