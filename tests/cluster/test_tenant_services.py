"""Everything that the chart ray-service can render runs within a tenant's bounds; and what happens within bounds
that the chart refuses to build."""

from collections.abc import Iterator
from typing import Any

import pytest
from packaging.version import Version

from charts.kit import VALUES, example, over
from cluster.kit.cluster import Cluster, Object
from cluster.kit.helm import Helm
from cluster.kit.tenants import Tenant, tenant
from cluster.kit.wait import eventually
from testbed.nodes import cpu_nodes

EXAMPLES = sorted(path.stem for path in VALUES.glob("*.yaml"))
ROOM = {
    "quota": {
        "gpus": {
            resource: {"planned": 200, "upgradeSurge": 200}
            for resource in ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/xe", "gpu.intel.com/i915")
        },
        "pods": {"baseline": 500, "upgradeSurge": 500},
        # The operator makes a Gateway for the fullest example, which upgrades incrementally from KubeRay 1.7.0 on.
        "objects": {"services": 200, "secrets": 200, "gateways": 1},
        "storage": {"size": "20Ti"},
        "allowedPriorityClasses": ["head", "workers"],
    }
}
HERE = {"suspend": False, "aliases": None}
"""Awake, and without aliases, which would lie in namespaces of others."""
ONLY_1_7_0 = {"upgrade": {"strategy": "NewCluster"}, "workerGroups": {"fast": {"priority": None}}}


@pytest.fixture(scope="module")
def helm4(cluster: Cluster) -> Helm:
    return Helm.of_major("4", cluster.place.kubeconfig)


CLASSES: list[Object] = [
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "head"}, "value": 2},
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "workers"}, "value": 1},
    {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "nvidia"},
]
"""What the fullest example names, and an administrator makes."""


@pytest.fixture(scope="module")
def team(cluster: Cluster, helm4: Helm) -> Iterator[Tenant]:
    """With room for all examples at once, whose pipeline has installed them. No node has GPUs: pods are made, and
    wait."""
    with (
        cluster.machines([*CLASSES, *cpu_nodes(2, cpus=64, memory_gib=256)]),
        cluster.namespace() as releases,
        tenant(cluster, helm4, releases, ROOM) as made,
    ):
        for name in EXAMPLES:
            install(made, name)
        yield made


def install(team: Tenant, name: str) -> None:
    kuberay = team.cluster.place.kuberay
    older = ONLY_1_7_0 if name == "everything" and Version(kuberay) < Version("1.7.0") else {}
    installed = "PodMonitor" in team.cluster.kubectl("api-resources", "--no-headers")
    monitors = {"scraping": {"kind": "PodMonitor" if installed else "None"}}
    values = over(over(example(name), {"kuberay": {"version": kuberay}}), over(over(HERE, older), monitors))
    team.helm.install("ray-service", name, team.namespace, values, *team.deployer.flags)


def promised(ray_cluster: Object) -> int:
    """Pods that a RayCluster asks for at its least."""
    groups = ray_cluster["spec"]["workerGroupSpecs"]
    return 1 + sum(group["minReplicas"] * group.get("numOfHosts", 1) for group in groups)


CONFLICT = "the object has been modified"
"""The count of a quota was written twice at once: the operator tries again."""


def complaints(team: Tenant) -> list[str]:
    messages = [event["message"] for event in team.cluster.all("Event", team.namespace)]
    return [message for message in messages if "forbidden" in message and CONFLICT not in message]


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_gets_all_of_its_pods(team: Tenant, name: str) -> None:
    cluster, namespace = team.cluster, team.namespace

    def all_made() -> bool:
        found = cluster.all("RayCluster", namespace, {"ray.io/originated-from-cr-name": name})
        return bool(found) and all(
            len(cluster.all("Pod", namespace, {"ray.io/cluster": item["metadata"]["name"]})) == promised(item)
            for item in found
        )

    eventually(all_made, f"all pods of {name} being made", shows=lambda: complaints(team))


def test_nothing_was_forbidden_on_the_way(team: Tenant) -> None:
    assert complaints(team) == []


def test_quota_counts_the_gpus_of_every_kind(team: Tenant) -> None:
    def counted() -> dict[str, int]:
        used = team.cluster.one("ResourceQuota", team.name, team.namespace)["status"]["used"]
        return {name: int(count) for name, count in used.items() if name.startswith("requests.") and "/" in name}

    def asked() -> dict[str, int]:
        found = dict.fromkeys(counted(), 0)
        for pod in team.cluster.all("Pod", team.namespace, {"ray.io/node-type": "worker"}):
            for resource, count in pod["spec"]["containers"][0]["resources"]["requests"].items():
                if f"requests.{resource}" in found:
                    found[f"requests.{resource}"] += int(count)
        return found

    used = eventually(lambda: (now := counted()) == asked() and now, "the quota counting what pods request")
    assert {name for name, count in used.items() if count} >= {"requests.nvidia.com/gpu", "requests.amd.com/gpu"}


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"min": {"memory": "257Mi"}}, "minimum memory usage per Container is 257Mi, but request is 256Mi"),
        ({"min": {"cpu": "201m"}}, "minimum cpu usage per Container is 201m, but request is 200m"),
    ],
)
def test_limit_range_that_rules_refuse_prevents_worker_start(
    cluster: Cluster, helm4: Helm, limits: dict[str, Any], words: str
) -> None:
    """KubeRay's own init container is what it stops: `weights` are off, so there is no other."""
    refused = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "refused-at-render"}}
    with cluster.namespace() as namespace:
        cluster.apply({**refused, "spec": {"limits": [{"type": "Container", **limits}]}}, namespace=namespace)
        values = over(example("stand-in"), {"kuberay": {"version": cluster.place.kuberay}})
        helm4.install("ray-service", "chat", namespace, values)
        eventually(
            lambda: [item for item in cluster.all("Event", namespace) if words in item["message"]],
            words,
            shows=lambda: cluster.tell(namespace),
        )
        assert not cluster.all("Pod", namespace, {"ray.io/node-type": "worker"})
