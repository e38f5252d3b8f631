"""Partitioned GPUs on a real scheduler: as many as the plan counts on, and not one more."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from charts.kit import example, over
from cluster.kit.cluster import Cluster, Object
from cluster.kit.fleets import Fleet, fleet_clusters
from cluster.kit.helm import Helm, Refused
from cluster.kit.wait import eventually, stays

(SHARED,) = [fleet for fleet in fleet_clusters() if fleet.name == "shared-gpus"]
OFFERED: Counter[str] = sum((Counter(pool.gpu_resources) for pool in SHARED.rendered.plan.pools.values()), Counter())


@pytest.fixture(scope="module")
def machines(cluster: Cluster) -> Iterator[Fleet]:
    with cluster.machines(SHARED.machines()):
        yield SHARED


def pod(name: str, resource: str, count: int = 1) -> Object:
    limits = {resource: str(count), "cpu": "10m", "memory": "16Mi"}
    container = {"name": "main", "image": "registry.example/none", "resources": {"limits": limits}}
    spec = {"containers": [container], "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def placed(cluster: Cluster, namespace: str) -> int:
    return sum("nodeName" in item["spec"] for item in cluster.all("Pod", namespace))


def waiting(cluster: Cluster, namespace: str) -> Object:
    """The one pod without a node."""
    (left,) = [item for item in cluster.all("Pod", namespace) if "nodeName" not in item["spec"]]
    return left


def test_plan_counts_mig_instances_and_time_slices() -> None:
    assert OFFERED == {
        "nvidia.com/mig-3g.40gb": 5,
        "nvidia.com/mig-2g.20gb": 1,
        "nvidia.com/mig-1g.10gb": 2,
        "nvidia.com/gpu.shared": 4,
    }


@pytest.mark.parametrize("resource", OFFERED)
def test_pods_are_scheduled_up_to_the_number_of_parts(resource: str, machines: Fleet, cluster: Cluster) -> None:
    with cluster.namespace({}) as name:
        cluster.apply(*(pod(f"p{number}", resource) for number in range(OFFERED[resource] + 1)), namespace=name)
        eventually(lambda: placed(cluster, name) == OFFERED[resource], f"{OFFERED[resource]} pods with {resource}")
        stays(lambda: placed(cluster, name) == OFFERED[resource], "a pod has a part that does not exist", seconds=3)
        words = f"Insufficient {resource}"
        eventually(lambda: words in str(waiting(cluster, name)), words, shows=lambda: waiting(cluster, name))


def test_no_pod_gets_a_whole_gpu_that_is_partitioned(machines: Fleet, cluster: Cluster) -> None:
    with cluster.namespace({}) as name:
        cluster.apply(pod("whole", "nvidia.com/gpu"), namespace=name)
        stays(lambda: placed(cluster, name) == 0, "a partitioned GPU was allocated whole", seconds=3)


# -- settings of the operators ---------------------------------------------------------------------------------------

ONLY_GPUS: dict[str, Any] = {
    "amd": {"enabled": False},  # its CRD travels in no Go module
    "runtimeClasses": {"nvidia": {"handler": "nvidia"}},
}


def platform_values() -> dict[str, Any]:
    everything = example("platform/everything")
    kept = {key: everything[key] for key in ("nvidia", "intel", "priorityClasses")}
    return over(kept, ONLY_GPUS)


@pytest.fixture
def current_policies(cluster: Cluster) -> None:
    """ClusterPolicies have `cdi` since operator 22.9; the last CRD in a Go module is older."""
    schema = {"type": "object", "properties": {"enabled": {"type": "boolean"}}}
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/cdi"
    change = json.dumps([{"op": "add", "path": path, "value": schema}])
    cluster.kubectl("patch", "crd", "clusterpolicies.nvidia.com", "--type=json", f"--patch={change}")


@pytest.mark.usefixtures("current_policies")
def test_configuration_of_gpu_operators_is_accepted_and_uninstalled(cluster: Cluster, each_helm: Helm) -> None:
    with cluster.namespace() as release, cluster.namespace({}, name="nvidia"):
        each_helm.install("platform", "platform", release, platform_values())
        policy = cluster.kubectl("get", "clusterpolicies.nvidia.com", "--output=name").split()
        plugins = cluster.kubectl("get", "gpudeviceplugins.deviceplugin.intel.com", "--output=name").split()
        assert (len(policy), len(plugins)) == (1, 2)
        assert cluster.one("ConfigMap", "platform-mig", "nvidia")["data"]["config.yaml"]
        assert cluster.one("PriorityClass", "ray-head")["value"] == 3000
        each_helm.uninstall("platform", release)
        assert not cluster.kubectl("get", "clusterpolicies.nvidia.com", "--output=name").split()
        assert not cluster.find("PriorityClass", "ray-head")
    eventually(lambda: not cluster.find("Namespace", "nvidia"), "the operator's namespace being gone")


def test_mig_layout_that_does_not_fit_is_refused_before_the_install(
    cluster: Cluster, helm: Helm, namespace: str
) -> None:
    wrong = {"nvidia": {"pools": {"isolated": {"mig": {"3g.40gb": 3}}}}}
    with pytest.raises(Refused, match="mig-capacity"):
        helm.install("platform", "platform", namespace, over(platform_values(), wrong))
    assert not cluster.kubectl("get", "clusterpolicies.nvidia.com", "--output=name").split()
