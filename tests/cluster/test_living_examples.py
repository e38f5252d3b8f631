"""The smaller examples in earnest, each in a namespace that enforces Pod Security `restricted`."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from charts.kit import EXAMPLES, FLEETS, over
from cluster.kit.cluster import Cluster, Object, reason
from cluster.kit.examples import rendered, values_of
from cluster.kit.helm import Helm
from cluster.kit.references import Reference, references
from cluster.kit.wait import eventually
from testbed.nodes import cpu_nodes


class Living(NamedTuple):
    """An example that was installed where Pod Security enforces `restricted`. Its workers have no node, and wait."""

    name: str
    namespace: str
    objects: list[Object]

    @property
    def service(self) -> Object:
        return service_of(self.objects)


SMALL = [name for name in EXAMPLES if name not in FLEETS]
"""Those of the charts' tests; test_fleets.py has the fleets."""
CLASSES: dict[str, Object] = {
    "PriorityClass": {"apiVersion": "scheduling.k8s.io/v1", "value": 1},
    "RuntimeClass": {"apiVersion": "node.k8s.io/v1", "handler": "runc"},
}
"""Without them the API server refuses the pods that name them."""


@pytest.fixture(scope="module")
def living(cluster: Cluster) -> Iterator[dict[str, Living]]:
    """All at once: the operator takes its time for each. Nodes are there for heads, and for what empties Redis."""
    helm, found = Helm.of_major("4", cluster.place.kubeconfig), {}
    with ExitStack() as stack:
        stack.enter_context(cluster.machines(cpu_nodes(3)))
        for mentioned in set().union(*(classes(service_of(rendered_for(name, cluster, "any"))) for name in SMALL)):
            cluster.apply({"kind": mentioned.kind, "metadata": {"name": mentioned.name}, **CLASSES[mentioned.kind]})
            stack.callback(cluster.delete, mentioned.kind, mentioned.name)
        for name in SMALL:
            namespace = stack.enter_context(cluster.namespace())
            found[name] = Living(name, namespace, rendered_for(name, cluster, namespace))
            helm.install("ray-service", name, namespace, living_values(name, cluster, namespace))
        yield found


def living_values(name: str, cluster: Cluster, namespace: str) -> dict[str, Any]:
    return dict(over(values_of(name, cluster.place.kuberay, namespace), {"suspend": None}))


def rendered_for(name: str, cluster: Cluster, namespace: str) -> list[Object]:
    return rendered(name, living_values(name, cluster, namespace), namespace)


def service_of(objects: list[Object]) -> Object:
    (found,) = (item for item in objects if item["kind"] == "RayService")
    return found


def pod_specs(service: Object) -> dict[str, Object]:
    """By the name that KubeRay calls their group."""
    config = service["spec"]["rayClusterConfig"]
    groups = {group["groupName"]: group["template"]["spec"] for group in config["workerGroupSpecs"]}
    return {"headgroup": config["headGroupSpec"]["template"]["spec"], **groups}


def classes(service: Object) -> set[Reference]:
    mentioned = {item for spec in pod_specs(service).values() for item in references(spec)}
    return {item for item in mentioned if item.kind in CLASSES}


@pytest.mark.parametrize("name", SMALL)
def test_operator_does_not_change_applied_fields(name: str, living: dict[str, Living], cluster: Cluster) -> None:
    """What it wrote would be its own, and the next server-side apply, such as Helm 4's, would meet a conflict."""
    it = living[name]
    own_name = it.service["metadata"]["name"]

    def seen() -> Object | None:
        found = cluster.one("RayService", own_name, it.namespace)
        return found if found["metadata"].get("finalizers") and found.get("status") else None

    service = eventually(seen, f"the operator seeing {name}")
    assert reason(service, "Ready") != "ValidationFailed"
    assert service["metadata"]["generation"] == 1
    writers = {entry["manager"] for entry in service["metadata"]["managedFields"] if "f:spec" in entry["fieldsV1"]}
    assert writers == {"helm"}


@pytest.mark.parametrize("name", SMALL)
def test_pod_security_restricted_takes_every_pod_of(name: str, living: dict[str, Living], cluster: Cluster) -> None:
    it = living[name]
    wanted = Counter({"headgroup": 1})
    for group in it.service["spec"]["rayClusterConfig"]["workerGroupSpecs"]:
        wanted[group["groupName"]] = group["minReplicas"] * group["numOfHosts"]

    def made() -> bool:
        pods = cluster.all("Pod", it.namespace, {"ray.io/is-ray-node": "yes"})
        return Counter(pod["metadata"]["labels"]["ray.io/group"] for pod in pods) == wanted

    eventually(made, f"{dict(wanted)}", shows=lambda: cluster.tell(it.namespace))
    for job in (item for item in it.objects if item["kind"] == "Job"):
        labels = {"job-name": job["metadata"]["name"]}
        eventually(lambda labels=labels: cluster.all("Pod", it.namespace, labels), f"the pod of {labels}")
