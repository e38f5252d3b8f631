"""Each reference fleet on a real API server, with the real operator and the real scheduler."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from cluster.kit.cluster import Cluster, Object, condition
from cluster.kit.fleets import Fleet
from cluster.kit.helm import Helm
from cluster.kit.references import missing_references, stand_for
from cluster.kit.wait import eventually
from rayhelm.deploy.compose.worker_groups import get_gpu_resource
from rayhelm.planner.workers.kinds import find_hosts, name_pod_kinds
from testbed.nodes import pool_of


class Installed(NamedTuple):
    """A fleet's services, each in a namespace of its own, and Ready."""

    fleet: Fleet
    cluster: Cluster
    namespaces: dict[str, str]

    def ray_cluster(self, service: str) -> Object:
        (found,) = self.cluster.all("RayCluster", self.namespaces[service])
        return found

    def pods(self, service: str, kind: str = "") -> list[Object]:
        """Ray's pods: of `head`, of `worker`, or both."""
        labels = {"ray.io/is-ray-node": "yes", **({"ray.io/node-type": kind} if kind else {})}
        return self.cluster.all("Pod", self.namespaces[service], labels)

    def every_pod(self, service: str) -> list[Object]:
        """Those of Jobs and tests too."""
        return self.cluster.all("Pod", self.namespaces[service])


@pytest.fixture(scope="module")
def installed(fleet: Fleet, cluster: Cluster) -> Iterator[Installed]:
    """All services of the fleet at once, because they share its GPUs."""
    helm = Helm.of_major("4", cluster.place.kubeconfig)
    with ExitStack() as stack:
        namespaces = {service: stack.enter_context(cluster.namespace()) for service in fleet.services}
        for service, namespace in namespaces.items():
            values = fleet.values(service, kuberay=cluster.place.kuberay)
            for alias in values.get("aliases", {}).values():
                stack.enter_context(cluster.namespace(name=alias["namespace"]))
            if secrets := stand_for(values):
                cluster.apply(*secrets, namespace=namespace)
            helm.install("ray-service", service, namespace, values)
        for service, namespace in namespaces.items():
            cluster.becomes_ready(service, namespace)
        yield Installed(fleet, cluster, namespaces)


def devices(amounts: Object) -> Counter[str]:
    """GPU resources of all vendors, whole and partitioned."""
    return Counter({name: int(count) for name, count in amounts.items() if "gpu" in name or "/mig-" in name})


def gpus(pod: Object) -> Counter[str]:
    """What a pod asks for."""
    return devices(pod["spec"]["containers"][0]["resources"]["limits"])


def test_every_group_has_the_pods_that_the_values_promise(installed: Installed) -> None:
    for service in installed.fleet.services:
        groups = installed.fleet.rendered.values[service].worker_groups
        found = Counter(pod["metadata"]["labels"]["ray.io/group"] for pod in installed.pods(service, "worker"))
        assert found == Counter({name: group.min_replicas for name, group in groups.items()})
        assert len(installed.pods(service, "head")) == 1
        for pod in installed.pods(service, "worker"):
            group = groups[pod["metadata"]["labels"]["ray.io/group"]]
            assert gpus(pod) == {get_gpu_resource(group): group.gpu.count}


def test_planned_load_takes_the_gpus_that_the_plan_holds(installed: Installed) -> None:
    for service in installed.fleet.services:
        planned = installed.fleet.rendered.plan.services[service].gpu_resources
        _scale(installed, service, sum(planned.values()))
        eventually(
            lambda service=service, planned=planned: _asked(installed, service) == planned,
            f"{service} with {planned} GPUs",
            shows=lambda service=service: installed.cluster.tell(installed.namespaces[service]),
        )
        installed.cluster.becomes_ready(service, installed.namespaces[service])
        # Ready stays True while workers are added: each needs its node before the next tests look.
        eventually(
            lambda service=service: all(condition(pod, "Ready") == "True" for pod in installed.pods(service)),
            f"all pods of {service} being Ready",
            shows=lambda service=service: installed.cluster.tell(installed.namespaces[service]),
        )


def _asked(installed: Installed, service: str) -> Counter[str]:
    return sum(map(gpus, installed.pods(service, "worker")), Counter[str]())


def _scale(installed: Installed, service: str, planned: int) -> None:
    """What Ray's autoscaler does when requests come: it writes `replicas` into the RayCluster."""
    groups = installed.fleet.rendered.values[service].worker_groups
    if len(groups) > 1:
        return  # groups beside each other are those of unlike hosts, and do not grow
    (group,) = groups.values()
    change = [{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": planned // group.gpu.count}]
    ray_cluster = installed.ray_cluster(service)["metadata"]["name"]
    installed.cluster.patch("raycluster", ray_cluster, installed.namespaces[service], change)


def test_every_worker_is_on_a_host_that_the_plan_names(installed: Installed) -> None:
    fleet = installed.fleet
    nodes = {node["metadata"]["name"]: node for node in installed.cluster.all("Node")}
    for service in fleet.services:
        kinds = {
            name: kind
            for kind, name in name_pod_kinds(
                fleet.rendered.plan.of_service(service), fleet.rendered.plan.declared
            ).items()
        }
        for pod in installed.pods(service, "worker"):
            kind = kinds[pod["metadata"]["labels"]["ray.io/group"]]
            node = pod["spec"]["nodeName"]
            assert pool_of(nodes[node]) == kind.pool
            unlike = find_hosts(kind, fleet.rendered.plan.declared.pools[kind.pool])
            assert not unlike or node in {host.name for host in unlike}


def test_no_node_has_more_gpus_requested_than_it_has(installed: Installed) -> None:
    asked: dict[str, Counter[str]] = defaultdict(Counter)
    for service in installed.fleet.services:
        for pod in installed.pods(service, "worker"):
            asked[pod["spec"]["nodeName"]] += gpus(pod)
    for node in installed.cluster.all("Node"):
        assert asked[node["metadata"]["name"]] <= devices(node["status"]["allocatable"])


def test_every_pod_is_accepted_by_pod_security_restricted_and_runs(installed: Installed) -> None:
    for service, namespace in installed.namespaces.items():
        labels = installed.cluster.one("Namespace", namespace)["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
        events = installed.cluster.all("Event", namespace)
        assert not [event["message"] for event in events if "violates PodSecurity" in event.get("message", "")]
        assert {pod["status"]["phase"] for pod in installed.pods(service)} == {"Running"}


def test_nothing_that_a_pod_mentions_is_missing(installed: Installed) -> None:
    """Under KWOK a pod is Ready whatever it mentions."""
    missing = [
        line
        for service in installed.fleet.services
        for pod in installed.every_pod(service)
        for line in missing_references(installed.cluster, pod)
    ]
    assert not missing


def test_every_disruption_budget_counts_its_pods(installed: Installed) -> None:
    for service, namespace in installed.namespaces.items():
        budgets = installed.cluster.all("PodDisruptionBudget", namespace)
        values = installed.fleet.rendered.values[service]
        assert len(budgets) == sum(pods.min_available > 0 for pods in (values.head, *values.worker_groups.values()))
        for budget in budgets:
            selector = budget["spec"]["selector"]["matchLabels"]
            count = len(installed.cluster.all("Pod", namespace, selector))
            assert count, budget["metadata"]["name"]
            status = eventually(
                lambda name=budget["metadata"]["name"], namespace=namespace, count=count: _counted(
                    installed.cluster.one("PodDisruptionBudget", name, namespace), count
                ),
                f"{service}: {budget['metadata']['name']} counting {count} pods",
            )
            assert status["currentHealthy"] >= status["desiredHealthy"]


def _counted(budget: Object, pods: int) -> Object | None:
    status: Object = budget.get("status", {})
    return status if status.get("expectedPods") == pods and status.get("currentHealthy") == pods else None


def test_weights_volume_exists_before_pods_wait_for_it(installed: Installed) -> None:
    for namespace in installed.namespaces.values():
        for claim in installed.cluster.all("PersistentVolumeClaim", namespace):
            assert claim["status"]["phase"] == "Bound", claim["metadata"]["name"]
