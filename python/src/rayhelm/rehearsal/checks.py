"""What a rehearsal refuses, before it makes anything: every obstacle that can be seen is told at once."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rayhelm.advice import how_to_get_cluster, how_to_get_kuberay
from rayhelm.catalog import load_catalog
from rayhelm.charts.helm import template
from rayhelm.errors import FleetError, MissingError, Problem
from rayhelm.kube.kubectl import Kubectl, KubectlError
from rayhelm.rehearsal import record
from rayhelm.rehearsal.capacity import ZERO, can_schedule, list_free_capacity, list_pod_requests
from rayhelm.rehearsal.load import NAMESPACE
from rayhelm.render.releases import Release
from rayhelm.values.emit import select_changed

__all__ = [
    "ClusterFacts",
    "check_reachable",
    "inspect_cluster",
    "list_namespaces",
    "refuse_obstacles",
    "refuse_other_rehearsal",
    "render_objects",
]

PATIENCE = 15
"""Seconds for a first answer."""

Object = Mapping[str, Any]


@dataclass(frozen=True)
class ClusterFacts:
    """A cluster, as far as a rehearsal has to know it."""

    server: str
    context: str
    kuberay: str
    """Version of its operator."""
    api_servers: tuple[str, ...]
    """CIDRs."""
    nodes: tuple[Object, ...]

    def images(self) -> set[str]:
        """Names of images that every node has; a kubelet tells the largest fifty."""
        each = [
            {name for image in node["status"].get("images", ()) for name in image["names"] or ()} for node in self.nodes
        ]
        return set.intersection(*each) if each else set()


def check_reachable(kubectl: Kubectl) -> tuple[str, str]:
    """Server and context of the cluster. Raises MissingError where it does not answer."""
    server, context = _named(kubectl)
    try:
        kubectl("get", "--raw=/version", f"--request-timeout={PATIENCE}s")
    except KubectlError as error:
        where = f"{server} (context {context})" if context else server or "the cluster that kubectl takes"
        fix = f"is it up, and may you use it?  kubectl {f'--context {context} ' if context else ''}version"
        raise MissingError(
            f"{where} does not answer: {_last(error.said)}", f"{fix}\nor {how_to_get_cluster()}"
        ) from None
    return server, context


def inspect_cluster(kubectl: Kubectl) -> ClusterFacts:
    """Raises MissingError where there is no cluster, or no KubeRay on it."""
    server, context = check_reachable(kubectl)
    version = _kuberay(kubectl)
    _operator(kubectl, version)
    slices = kubectl.get("endpointslices", "--selector=kubernetes.io/service-name=kubernetes", namespace="default")
    addresses = {
        f"{address}/{128 if item['addressType'] == 'IPv6' else 32}"
        for item in slices["items"]
        for endpoint in item.get("endpoints") or ()
        for address in endpoint["addresses"]
    }
    return ClusterFacts(server, context, version, tuple(sorted(addresses)), tuple(kubectl.get("nodes")["items"]))


def refuse_other_rehearsal(kubectl: Kubectl) -> None:
    """Raises FleetError where a rehearsal is on the cluster already."""
    there = record.read(kubectl) if record.is_left_behind(kubectl) else None
    if there is None:
        if record.is_left_behind(kubectl):
            raise FleetError(
                Problem(f"the namespace {NAMESPACE} is left of another rehearsal", fix=record.CLEAN_COMMAND)
            )
        return
    if there.runs:
        raise FleetError(Problem(f"{there} runs on this cluster right now", fix="wait for its end, or end it: Ctrl-C"))
    state = "was kept on this cluster" if there.kept else "was interrupted on this cluster, or runs on another computer"
    raise FleetError(Problem(f"{there} {state}", fix=record.CLEAN_COMMAND))


def render_objects(releases: Collection[Release]) -> list[list[dict[str, Any]]]:
    """What the charts make of each. Raises FleetError where one of them refuses its values."""
    return [
        template(each.chart, each.name, each.namespace, select_changed(each.values), kube_version=each.kubernetes)
        for each in releases
    ]


def list_namespaces(releases: Collection[Release], objects: Sequence[Sequence[Object]]) -> list[str]:
    """That the releases live in or make."""
    made = [item["metadata"]["name"] for each in objects for item in each if item["kind"] == "Namespace"]
    return list(dict.fromkeys([*(release.namespace for release in releases), *made]))


def refuse_obstacles(
    kubectl: Kubectl,
    found: ClusterFacts,
    releases: Collection[Release],
    objects: Sequence[Sequence[Object]],
    *,
    twice: Sequence[Object] = (),
    with_gpus: bool = False,
    allow_existing: bool = False,
) -> None:
    """Raises FleetError with every obstacle. `objects` are those of `releases`; `twice` those of the service that is
    there twice for a while."""
    names = list_namespaces(releases, objects)
    problems = [
        *([] if with_gpus else _cards(found)),
        *([] if allow_existing else _others(kubectl)),
        *_taken(kubectl, names, objects),
        *_room(kubectl, found, objects, twice),
    ]
    if problems:
        raise FleetError(problems)


def _named(kubectl: Kubectl) -> tuple[str, str]:
    """Server and context, as kubectl would take them; empty where it does not say."""
    try:
        config = json.loads(kubectl("config", "view", "--minify", "--output=json"))
    except KubectlError:
        return "", ""  # in a pod there is no kubeconfig
    (cluster,) = config.get("clusters") or [{}]
    return cluster.get("cluster", {}).get("server", ""), config.get("current-context", "")


def _kuberay(kubectl: Kubectl) -> str:
    """By fields that one version has and the one before it has not."""
    said = kubectl("get", "crd", "rayservices.ray.io", "--ignore-not-found", "--output=json")
    if not said:
        raise MissingError(
            "the cluster has no KubeRay: there is no CRD rayservices.ray.io", how_to_get_kuberay("1.7.0")
        )
    versions = {each["name"]: each["schema"]["openAPIV3Schema"] for each in json.loads(said)["spec"]["versions"]}
    spec = versions.get("v1", {}).get("properties", {}).get("spec", {}).get("properties", {})
    if "suspend" in spec:
        return "1.7.0"
    if "authOptions" in spec.get("rayClusterConfig", {}).get("properties", {}):
        return "1.6.2"
    raise MissingError("the cluster's KubeRay is older than 1.6.2, by its CRDs", how_to_get_kuberay("1.7.0"))


def _operator(kubectl: Kubectl, version: str) -> None:
    deployments = kubectl.get("deployments", "--all-namespaces")["items"]
    operators = [item for item in deployments if "kuberay-operator" in _names(item)]
    if not any(item.get("status", {}).get("availableReplicas") for item in operators):
        where = ", ".join(f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in operators)
        state = f"{where} has no pod that is available" if where else "no Deployment kuberay-operator is there"
        raise MissingError(f"KubeRay's operator does not run on the cluster: {state}", how_to_get_kuberay(version))


def _names(deployment: Object) -> set[str]:
    meta = deployment["metadata"]
    return {meta["name"], meta.get("labels", {}).get("app.kubernetes.io/name", "")}


def _cards(found: ClusterFacts) -> Iterator[Problem]:
    vendors = {card.resource.partition("/")[0] for card in load_catalog().gpus()}
    held = {
        node["metadata"]["name"]: resource
        for node in found.nodes
        for resource, count in node["status"].get("capacity", {}).items()
        if resource.partition("/")[0] in vendors and "/" in resource and count != "0"
    }
    if held:
        name, resource = next(iter(held.items()))
        more = f" and {len(held) - 1} more" if len(held) > 1 else ""
        yield Problem(
            f"the cluster has cards: {resource} on node {name}{more}; a rehearsal needs none, and belongs elsewhere",
            fix=f"{how_to_get_cluster()}\nor --with-gpus, which uses none of them",
        )


def _others(kubectl: Kubectl) -> Iterator[Problem]:
    items = kubectl.get("rayservices.ray.io", "--all-namespaces")["items"]
    if items:
        names = ", ".join(f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in items[:5])
        yield Problem(
            f"others have RayServices on this cluster: {names}{', ...' if len(items) > 5 else ''}",
            fix=f"{how_to_get_cluster()}\nor --allow-existing, which leaves them alone and takes room beside them",
        )


def _taken(kubectl: Kubectl, names: Sequence[str], objects: Sequence[Sequence[Object]]) -> Iterator[Problem]:
    there = kubectl("get", "namespace", *names, "--ignore-not-found", "--output=name").split()
    for name in there:
        name = name.removeprefix("namespace/")
        yield Problem(
            f"the namespace {name} is on this cluster already, and no rehearsal made it",
            fix=f"{how_to_get_cluster()}\nor, where nobody needs what is in it: kubectl delete namespace {name}",
        )
    wide = [item for each in objects for item in each if _is_wide(item)]
    if wide:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": wide})
        for name in kubectl("get", "--filename=-", "--ignore-not-found", "--output=name", text=text).split():
            yield Problem(
                f"{name} is on this cluster already, and no rehearsal made it",
                fix=f"{how_to_get_cluster()}\nor, where nobody needs it: kubectl delete {name}",
            )


def _is_wide(item: Object) -> bool:
    """Of the whole cluster."""
    return "namespace" not in item["metadata"] and item["kind"] in _WIDE


_WIDE = ("PriorityClass", "RuntimeClass", "ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy",
         "ValidatingAdmissionPolicyBinding")  # fmt: skip


def _room(
    kubectl: Kubectl, found: ClusterFacts, objects: Sequence[Sequence[Object]], twice: Sequence[Object]
) -> Iterator[Problem]:
    wanted = [*(room for each in objects for room in list_pod_requests(each)), *list_pod_requests(twice)]
    free = list_free_capacity(found.nodes, kubectl.get("pods", "--all-namespaces")["items"])
    if can_schedule(wanted, free):
        return
    total, most = (sum(rooms, start=ZERO) for rooms in (wanted, free))
    largest = max((room.memory for room in wanted), default=0.0) / 2**30
    beside = ", one service of them twice while its cluster is replaced" if twice else ""
    yield Problem(
        f"not enough room: the stand-ins ask for {total} in {len(wanted)} pods{beside}, the largest for"
        f" {largest:.1f} GiB; {len(free)} nodes without taints have {most} left",
        fix="--service S    # fewer services at a time\nor a larger cluster",
    )


def _last(said: str) -> str:
    """kubectl tries several times, and complains each time."""
    return said.splitlines()[-1] if said else "it says nothing"
