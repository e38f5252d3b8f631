"""A cluster as an analyser sees it: the NetworkPolicies that charts render, the pods that come of them, and strangers.

The pods are those of the charts' own objects, with the labels that KubeRay adds; where a part is off, somebody made a
pod with its labels all the same. Of everybody whom values or policies name there is one pod, beside it one without the
labels, and in another namespace one with them. It is strangers who tell a policy that opens too much.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rayhelm.network import Own, Pods, Site, passages

__all__ = ["Pod", "World", "world_of"]

Object = dict[str, Any]
Labels = Mapping[str, str]
ELSEWHERE = "elsewhere"
ROLES = ("head", "worker", "download", "test")
WITHOUT_PODS = {
    "ConfigMap", "ExternalSecret", "HTTPRoute", "HorizontalPodAutoscaler", "Ingress", "LimitRange", "LocalQueue",
    "Namespace", "NetworkPolicy", "PersistentVolumeClaim", "PodDisruptionBudget", "PodMonitor", "ResourceQuota", "Role",
    "RoleBinding", "ScaledObject", "Secret", "Service", "ServiceAccount",
}  # fmt: skip


@dataclass(frozen=True)
class Pod:
    """One pod."""

    namespace: str
    name: str
    labels: Labels = field(hash=False)
    about: str
    """What a reader knows it by."""
    release: str = ""
    """Chart and release that it belongs to: `ray-service/chat`."""
    role: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class World:
    """One cluster."""

    sites: tuple[Site, ...]
    policies: tuple[Object, ...]
    pods: tuple[Pod, ...]

    @cached_property
    def guarded(self) -> set[str]:
        """Keys of the pods that the charts answer for: their own, and all in the namespaces of tenants."""
        walls = {site.namespace for site in self.sites if site.chart == "tenant"}
        return {pod.key for pod in self.pods if pod.release or pod.namespace in walls}

    def objects(self) -> list[Object]:
        """Everything, as Kubernetes objects."""
        spaces = dict.fromkeys(
            [*(pod.namespace for pod in self.pods), *(item["metadata"]["namespace"] for item in self.policies)]
        )
        return [
            *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in spaces),
            *(_as_object(pod) for pod in self.pods),
            *self.policies,
        ]


def world_of(sites: Iterable[tuple[Site, list[Object]]]) -> World:
    """Releases with the objects that Helm renders of each."""
    known = list(sites)
    own = [pod for site, objects in known for pod in _own(site, objects)]
    policies = [item for _, objects in known for item in objects if item["kind"] == "NetworkPolicy"]
    named = dict.fromkeys([*_named_by_values(site for site, _ in known), *_named_by_policies(policies)])
    strangers = _strangers(list(named), {site.namespace for site, _ in known}, own)
    return World(tuple(site for site, _ in known), tuple(policies), (*own, *strangers))


# -- pods of the releases ----------------------------------------------------------------------------------------------


def _own(site: Site, objects: list[Object]) -> Iterator[Pod]:
    made = [pod for item in objects for pod in _of_object(item, site)]
    yield from made
    if site.chart == "ray-service":
        for role in sorted(set(ROLES) - {pod.role for pod in made}):
            labels = {"rayhelm.dev/service": site.name, "rayhelm.dev/role": role}
            yield _pod(site, f"{site.name}-{role}-of-somebody", role, labels)


def _of_object(item: Object, site: Site) -> Iterator[Pod]:
    kind, name = item["kind"], item["metadata"]["name"]
    if kind == "RayService":
        yield from _of_rays(item, site)
    elif kind == "Deployment":
        labels = item["spec"]["template"]["metadata"]["labels"]
        yield from (_pod(site, f"{name}-{number}", site.chart, labels) for number in (1, 2))
    elif kind in ("Job", "Pod"):
        labels = (item["spec"]["template"] if kind == "Job" else item)["metadata"]["labels"]
        yield _pod(site, name, labels["rayhelm.dev/role"], labels)
    else:
        assert kind in WITHOUT_PODS, f"{kind} {name}: nobody says here what pods come of it"


def _of_rays(item: Object, site: Site) -> Iterator[Pod]:
    """Two clusters, as during an upgrade, and the pod that empties Redis after one."""
    name, config = item["metadata"]["name"], item["spec"]["rayClusterConfig"]
    head = config["headGroupSpec"]["template"]["metadata"]["labels"]
    for cluster in (f"{name}-old", f"{name}-new"):
        yield _pod(site, f"{cluster}-head", "head", head | _kuberay(cluster, "head", "headgroup"))
        for group in config["workerGroupSpecs"]:
            labels = group["template"]["metadata"]["labels"] | _kuberay(cluster, "worker", group["groupName"])
            yield _pod(site, f"{cluster}-{group['groupName']}", "worker", labels)
    labels = head | _kuberay(f"{name}-old", "redis-cleanup", "headgroup")
    yield _pod(site, f"{name}-old-redis-cleanup", "redis-cleanup", labels)


def _kuberay(cluster: str, kind: str, group: str) -> dict[str, str]:
    """Labels that KubeRay adds (labelPod in its controllers/ray/common/pod.go). The pod that empties Redis has those of
    a head, but for the type of node (buildRedisCleanupJob in raycluster_controller.go)."""
    return {
        "ray.io/is-ray-node": "yes",
        "ray.io/cluster": cluster,
        "ray.io/node-type": kind,
        "ray.io/group": group,
        "ray.io/identifier": f"{cluster}-{kind}",
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }


def _pod(site: Site, name: str, role: str, labels: Labels) -> Pod:
    about = site.name if site.chart == role else f"{site.name} {role}"
    return Pod(site.namespace, name, labels, about, f"{site.chart}/{site.name}", role)


# -- everybody else ----------------------------------------------------------------------------------------------------


def _named_by_values(sites: Iterable[Site]) -> Iterator[Pods]:
    for site in sites:
        for passage in passages(site):
            for end in (*passage.sources, *passage.targets):
                if isinstance(end, Pods) or (isinstance(end, Own) and end.labels):
                    yield Pods(end.namespace, end.labels)


def _named_by_policies(policies: list[Object]) -> Iterator[Pods]:
    """Of a peer that only a policy knows there is a pod too."""
    for spec in (item["spec"] for item in policies):
        peers = [peer for rule in spec.get("ingress") or [] for peer in rule.get("from") or []]
        peers += [peer for rule in spec.get("egress") or [] for peer in rule.get("to") or []]
        for peer in peers:
            space = peer.get("namespaceSelector", {}).get("matchLabels", {}).get("kubernetes.io/metadata.name")
            if space:
                yield Pods(space, tuple(sorted(peer.get("podSelector", {}).get("matchLabels", {}).items())))


def _strangers(named: list[Pods], spaces: set[str], own: list[Pod]) -> Iterator[Pod]:
    for number, end in enumerate(named):
        labels = dict(end.labels)
        if not any(pod.namespace == end.namespace and labels.items() <= pod.labels.items() for pod in own):
            yield Pod(end.namespace, f"named-{number}", labels, f"{end.namespace}{_with(labels)}")
        if labels:
            yield Pod(ELSEWHERE, f"like-{number}", labels, f"a pod in {ELSEWHERE}{_with(labels)}")
    for role in {(pod.release, pod.role): pod for pod in own}.values():
        name, about = f"as-{role.namespace}-{role.name}", f"a pod in {ELSEWHERE} labelled as {role.about}"
        yield Pod(ELSEWHERE, name, role.labels, about)
    for space in sorted(spaces | {end.namespace for end in named} | {ELSEWHERE}):
        yield Pod(space, "stranger", {}, f"a pod without labels in {space}")


def _with(labels: Labels) -> str:
    return f" with {', '.join(f'{key}={value}' for key, value in labels.items())}" if labels else ""


def _as_object(pod: Pod) -> Object:
    metadata = {"name": pod.name, "namespace": pod.namespace, "labels": dict(pod.labels)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "main", "image": "i"}]},
    }
