"""Every example, field by field, on the API server: of the charts' tests, and of the reference fleets."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest
import yaml

from charts.kit import EXAMPLES, FLEETS, example, over
from cluster.kit.cluster import Cluster, Object, reason
from cluster.kit.helm import Helm
from cluster.kit.references import Reference, references
from cluster.kit.wait import eventually
from rayhelm.charts.helm import render
from testbed.control_plane.kubectl import KubectlError

OF_1_7_0 = {
    "everything": {
        "suspend": None,
        "upgrade": {"strategy": "NewCluster"},
        "workerGroups": {"fast": {"priority": None}},
    }
}
"""What an older KubeRay does not know or heed, and the chart refuses for it."""
UNKNOWN = {"spec.suspend", "spec.rayClusterConfig.workerGroupSpecs[0].priority"}
"""Fields of these that the API server does not know, as it calls them."""


def values_of(name: str, kuberay: str, elsewhere: str) -> dict[str, Any]:
    """For this operator, with the aliases in a namespace that is there."""
    older = OF_1_7_0.get(name, {}) if kuberay < "1.7.0" else {}
    values = over(over(example(name), {"kuberay": {"version": kuberay}}), older)
    aliases = {alias: {"namespace": elsewhere} for alias in values.get("aliases", {})}
    gateways = {"callers": {"namespace": elsewhere}} if aliases else {}
    return dict(over(values, {"aliases": aliases, "networkPolicy": {"gateways": gateways}}))


def rendered(name: str, values: dict[str, Any], namespace: str) -> list[Object]:
    text = render("ray-service", name.rpartition("/")[2], namespace, values)
    return [item for item in yaml.safe_load_all(text) if item]


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
def test_the_api_server_takes_every_field_of(
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


def test_a_field_that_nobody_knows_is_refused(cluster: Cluster, room: str, elsewhere: str) -> None:
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


# -- in earnest ------------------------------------------------------------------------------------------------------


class Living(NamedTuple):
    """An example that was installed where Pod Security enforces `restricted`. There is no node: its pods wait."""

    name: str
    namespace: str
    objects: list[Object]

    @property
    def service(self) -> Object:
        (found,) = (item for item in self.objects if item["kind"] == "RayService")
        return found


SMALL = [name for name in EXAMPLES if name not in FLEETS]
"""Those of the charts' tests; test_fleets.py has the fleets."""
CLASSES = {
    "PriorityClass": {"apiVersion": "scheduling.k8s.io/v1", "value": 1},
    "RuntimeClass": {"apiVersion": "node.k8s.io/v1", "handler": "runc"},
}
"""Without them the API server refuses the pods that name them."""


@pytest.fixture(scope="module")
def living(cluster: Cluster) -> Iterator[dict[str, Living]]:
    """All at once: the operator takes its time for each."""
    helm, found = Helm.of_major("4", cluster.place.kubeconfig), {}
    with ExitStack() as stack:
        for name in SMALL:
            namespace = stack.enter_context(cluster.namespace())
            values = over(values_of(name, cluster.place.kuberay, namespace), {"suspend": None})
            found[name] = Living(name, namespace, rendered(name, values, namespace))
            for mentioned in classes(found[name].service):
                cluster.apply({"kind": mentioned.kind, "metadata": {"name": mentioned.name}, **CLASSES[mentioned.kind]})
                stack.callback(cluster.delete, mentioned.kind, mentioned.name)
            helm.install("ray-service", name, namespace, values)
        yield found


def pod_specs(service: Object) -> dict[str, Object]:
    """By the name that KubeRay calls their group."""
    config = service["spec"]["rayClusterConfig"]
    groups = {group["groupName"]: group["template"]["spec"] for group in config["workerGroupSpecs"]}
    return {"headgroup": config["headGroupSpec"]["template"]["spec"], **groups}


def classes(service: Object) -> set[Reference]:
    mentioned = {item for spec in pod_specs(service).values() for item in references(spec)}
    return {item for item in mentioned if item.kind in CLASSES}


@pytest.mark.parametrize("name", SMALL)
def test_the_operator_writes_nothing_into_what_was_applied(
    name: str, living: dict[str, Living], cluster: Cluster
) -> None:
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
