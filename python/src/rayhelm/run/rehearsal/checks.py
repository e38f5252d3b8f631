"""Check before a rehearsal creates anything. All problems are reported together."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rayhelm.deploy.advice import how_to_get_cluster, how_to_get_kuberay
from rayhelm.deploy.charts.helm import template
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.emit import select_changed
from rayhelm.errors import Fix, FleetError, MissingError, Problem
from rayhelm.facts import load_catalog
from rayhelm.live.cluster.kubectl import Kubectl, KubectlError
from rayhelm.run.rehearsal import record
from rayhelm.run.rehearsal.capacity import ZERO, can_schedule, list_free_capacity, list_pod_requests
from rayhelm.run.rehearsal.load import NAMESPACE

__all__ = [
    "ClusterFacts",
    "check_reachable",
    "inspect_cluster",
    "list_namespaces",
    "refuse_obstacles",
    "refuse_other_rehearsal",
    "render_objects",
]

CONNECT_TIMEOUT = 15
"""Seconds for the first answer."""

Object = Mapping[str, Any]


@dataclass(frozen=True)
class ClusterFacts:
    """What a rehearsal has to know about a cluster."""

    server: str
    context: str
    kuberay: str
    """Version of its operator."""
    api_servers: tuple[str, ...]
    """CIDRs."""
    nodes: tuple[Object, ...]
    operator_namespace: str = ""
    """Namespace of its operator."""

    def list_images(self) -> set[str]:
        """Return the images that every node has; a kubelet reports its 50 largest ones."""
        each = [
            {name for image in node["status"].get("images", ()) for name in image["names"] or ()} for node in self.nodes
        ]
        return set.intersection(*each) if each else set()


def check_reachable(kubectl: Kubectl) -> tuple[str, str]:
    """Return server and context of the cluster. Raises MissingError if it does not answer."""
    server, context = _read_config(kubectl)
    try:
        kubectl("get", "--raw=/version", f"--request-timeout={CONNECT_TIMEOUT}s")
    except KubectlError as error:
        where = f"{server} (context {context})" if context else server or "the current cluster of kubectl"
        command = f"kubectl {f'--context {context} ' if context else ''}version"
        fix = Fix(command=command, why="check the cluster and your access; or start a cluster:")
        message = f"{where} does not answer: {_get_last_line(error.said)}"
        raise MissingError(message, fix, how_to_get_cluster()) from None
    return server, context


def inspect_cluster(kubectl: Kubectl) -> ClusterFacts:
    """Read the facts of the cluster. Raises MissingError if there is no cluster or no KubeRay on it."""
    server, context = check_reachable(kubectl)
    version = _find_kuberay_version(kubectl)
    operator_namespace = _find_operator_namespace(kubectl, version)
    slices = kubectl.get("endpointslices", "--selector=kubernetes.io/service-name=kubernetes", namespace="default")
    addresses = {
        f"{address}/{128 if item['addressType'] == 'IPv6' else 32}"
        for item in slices["items"]
        for endpoint in item.get("endpoints") or ()
        for address in endpoint["addresses"]
    }
    nodes = tuple(kubectl.get("nodes")["items"])
    return ClusterFacts(server, context, version, tuple(sorted(addresses)), nodes, operator_namespace)


def refuse_other_rehearsal(kubectl: Kubectl) -> None:
    """Raise FleetError if another rehearsal is on the cluster."""
    earlier = record.read(kubectl) if record.is_left_behind(kubectl) else None
    if earlier is None:
        if record.is_left_behind(kubectl):
            raise FleetError(
                Problem(f"the namespace {NAMESPACE} exists; an earlier rehearsal left it", fix=record.CLEAN)
            )
        return
    if earlier.is_running:
        fix = Fix.advice("wait until it ends, or stop it with Ctrl-C")
        raise FleetError(Problem(f"{earlier} is running on this cluster", fix=fix))
    state = (
        "was kept on this cluster" if earlier.kept else "was interrupted on this cluster, or runs on another computer"
    )
    raise FleetError(Problem(f"{earlier} {state}", fix=record.CLEAN))


def render_objects(releases: Collection[Release]) -> list[list[dict[str, Any]]]:
    """Render each release. Raises FleetError if a chart refuses its values."""
    return [
        template(each.chart, each.name, each.namespace, select_changed(each.values), kube_version=each.kubernetes)
        for each in releases
    ]


def list_namespaces(releases: Collection[Release], objects: Sequence[Sequence[Object]]) -> list[str]:
    """Return the namespaces that the releases use or create."""
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
    """Raise FleetError with every problem of the cluster.

    `objects` are those of `releases`; `twice` those of the service that has two Ray clusters during the change.
    """
    names = list_namespaces(releases, objects)
    problems = [
        *([] if with_gpus else _list_gpu_problems(found)),
        *([] if allow_existing else _list_other_services(kubectl)),
        *_list_existing(kubectl, names, objects),
        *_list_capacity_problems(kubectl, found, objects, twice),
    ]
    if problems:
        raise FleetError(problems)


def _read_config(kubectl: Kubectl) -> tuple[str, str]:
    """Return server and context that kubectl uses; empty if it does not report them."""
    try:
        config = json.loads(kubectl("config", "view", "--minify", "--output=json"))
    except KubectlError:
        return "", ""  # in a pod there is no kubeconfig
    (cluster,) = config.get("clusters") or [{}]
    return cluster.get("cluster", {}).get("server", ""), config.get("current-context", "")


def _find_kuberay_version(kubectl: Kubectl) -> str:
    """Find the version by fields of the CRD that the version before does not have."""
    crd = kubectl("get", "crd", "rayservices.ray.io", "--ignore-not-found", "--output=json")
    if not crd:
        raise MissingError(
            "the cluster has no KubeRay: CRD rayservices.ray.io does not exist", how_to_get_kuberay("1.7.0")
        )
    versions = {each["name"]: each["schema"]["openAPIV3Schema"] for each in json.loads(crd)["spec"]["versions"]}
    spec = versions.get("v1", {}).get("properties", {}).get("spec", {}).get("properties", {})
    if "suspend" in spec:
        return "1.7.0"
    if "authOptions" in spec.get("rayClusterConfig", {}).get("properties", {}):
        return "1.6.2"
    raise MissingError("the cluster's KubeRay is older than 1.6.2, by its CRDs", how_to_get_kuberay("1.7.0"))


def _find_operator_namespace(kubectl: Kubectl, version: str) -> str:
    """Return the namespace of the operator that runs. Raises MissingError if none does."""
    deployments = kubectl.get("deployments", "--all-namespaces")["items"]
    operators = [item for item in deployments if "kuberay-operator" in _list_names(item)]
    for item in operators:
        if item.get("status", {}).get("availableReplicas"):
            return str(item["metadata"]["namespace"])
    where = ", ".join(f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in operators)
    state = f"{where} has no available pod" if where else "there is no Deployment kuberay-operator"
    raise MissingError(f"the KubeRay operator does not run on the cluster: {state}", how_to_get_kuberay(version))


def _list_names(deployment: Object) -> set[str]:
    meta = deployment["metadata"]
    return {meta["name"], meta.get("labels", {}).get("app.kubernetes.io/name", "")}


def _list_gpu_problems(found: ClusterFacts) -> Iterator[Problem]:
    vendors = {gpu.resource.partition("/")[0] for gpu in load_catalog().gpus()}
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
            f"the cluster has GPUs: {resource} on node {name}{more}. A rehearsal needs none; run it on another cluster",
            fix=how_to_get_cluster(),
            alternatives=(Fix(command="rayhelm rehearse ... --with-gpus", why="the rehearsal uses none of them"),),
        )


def _list_other_services(kubectl: Kubectl) -> Iterator[Problem]:
    items = kubectl.get("rayservices.ray.io", "--all-namespaces")["items"]
    if items:
        names = ", ".join(f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in items[:5])
        yield Problem(
            f"the cluster has other RayServices: {names}{', ...' if len(items) > 5 else ''}",
            fix=how_to_get_cluster(),
            alternatives=(Fix(command="rayhelm rehearse ... --allow-existing", why="leaves them alone"),),
        )


def _list_existing(kubectl: Kubectl, names: Sequence[str], objects: Sequence[Sequence[Object]]) -> Iterator[Problem]:
    existing = kubectl("get", "namespace", *names, "--ignore-not-found", "--output=name").split()
    for name in existing:
        name = name.removeprefix("namespace/")
        yield Problem(
            f"the namespace {name} already exists on the cluster, and no rehearsal created it",
            fix=how_to_get_cluster(),
            alternatives=(Fix(command=f"kubectl delete namespace {name}", why="if its contents are not needed"),),
        )
    cluster_scoped = [item for each in objects for item in each if _is_cluster_scoped(item)]
    if cluster_scoped:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": cluster_scoped})
        for name in kubectl("get", "--filename=-", "--ignore-not-found", "--output=name", text=text).split():
            yield Problem(
                f"{name} already exists on the cluster, and no rehearsal created it",
                fix=how_to_get_cluster(),
                alternatives=(Fix(command=f"kubectl delete {name}", why="if it is not needed"),),
            )


def _is_cluster_scoped(item: Object) -> bool:
    return "namespace" not in item["metadata"] and item["kind"] in _CLUSTER_KINDS


_CLUSTER_KINDS = ("PriorityClass", "RuntimeClass", "ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy",
         "ValidatingAdmissionPolicyBinding")  # fmt: skip


def _list_capacity_problems(
    kubectl: Kubectl, found: ClusterFacts, objects: Sequence[Sequence[Object]], twice: Sequence[Object]
) -> Iterator[Problem]:
    requested = [*(pod for each in objects for pod in list_pod_requests(each)), *list_pod_requests(twice)]
    free = list_free_capacity(found.nodes, kubectl.get("pods", "--all-namespaces")["items"])
    if can_schedule(requested, free):
        return
    total, available = (sum(each, start=ZERO) for each in (requested, free))
    largest = max((pod.memory for pod in requested), default=0.0) / 2**30
    note = ", including one service with two clusters during the change" if twice else ""
    yield Problem(
        f"the cluster is too small: the stand-ins request {total} in {len(requested)} pods{note}; the largest requests"
        f" {largest:.1f} GiB. {len(free)} nodes without taints have {available} free",
        fix=Fix(command="rayhelm rehearse ... --service NAME", why="rehearse fewer services at a time"),
        alternatives=(Fix.advice("use a larger cluster"),),
    )


def _get_last_line(output: str) -> str:
    """Return the last line: kubectl tries several times and prints an error each time."""
    return output.splitlines()[-1] if output else "kubectl printed no error"
