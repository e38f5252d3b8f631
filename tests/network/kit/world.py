"""A cluster as the analyzer reads it: the NetworkPolicies that charts render, the charts' pods, and foreign pods.

The charts' pods have the labels that KubeRay adds; for a part that is off there is a pod with its labels all the same.
For each peer that values or policies name there is one pod with its labels, one without them in the same namespace, and
one with them in another namespace. These foreign pods reveal a policy that allows too much.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rayhelm.deploy.network import NamedPods, NetworkRelease, ReleasePods, find_allowed_flows

__all__ = ["Pod", "World", "world_of"]

Object = dict[str, Any]
Labels = Mapping[str, str]
ELSEWHERE = "elsewhere"
_DEPLOYMENTS = {"doctor": "doctor", "metrics": "adapter"}
"""Roles of the Deployments of chart platform, by the end of their names."""
ROLES = ("head", "worker", "download", "test")
WITHOUT_PODS = {
    "ConfigMap", "ExternalSecret", "HTTPRoute", "HorizontalPodAutoscaler", "Ingress", "LimitRange", "LocalQueue",
    "Namespace", "NetworkPolicy", "PersistentVolumeClaim", "PodDisruptionBudget", "PodMonitor", "ResourceQuota", "Role",
    "RoleBinding", "ScaledObject", "Secret", "Service", "ServiceAccount",
    "APIService", "ClusterPolicy", "ClusterRole", "ClusterRoleBinding", "DeviceConfig", "GpuDevicePlugin",
    "GrafanaDashboard", "PriorityClass", "PrometheusRule", "RuntimeClass", "ScrapeConfig", "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}  # fmt: skip


@dataclass(frozen=True)
class Pod:
    """One pod."""

    namespace: str
    name: str
    labels: Labels = field(hash=False)
    about: str
    """Description for messages."""
    release: str = ""
    """Chart and release that it belongs to: `ray-service/chat`."""
    role: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class World:
    """One cluster."""

    network_releases: tuple[NetworkRelease, ...]
    policies: tuple[Object, ...]
    pods: tuple[Pod, ...]

    @cached_property
    def guarded(self) -> set[str]:
        """Keys of the pods that the charts isolate: their own, and all in the namespaces of tenants."""
        isolated = {
            network_release.namespace for network_release in self.network_releases if network_release.chart == "tenant"
        }
        return {pod.key for pod in self.pods if pod.release or pod.namespace in isolated}

    def objects(self) -> list[Object]:
        """All namespaces, pods and policies as Kubernetes objects."""
        spaces = dict.fromkeys(
            [*(pod.namespace for pod in self.pods), *(item["metadata"]["namespace"] for item in self.policies)]
        )
        return [
            *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in spaces),
            *(_as_object(pod) for pod in self.pods),
            *self.policies,
        ]


def world_of(network_releases: Iterable[tuple[NetworkRelease, list[Object]]]) -> World:
    """Build a world of releases, each with the objects that Helm renders."""
    known = list(network_releases)
    own = [pod for network_release, objects in known for pod in _own(network_release, objects)]
    policies = [item for _, objects in known for item in objects if item["kind"] == "NetworkPolicy"]
    named = dict.fromkeys(
        [*_named_by_values(network_release for network_release, _ in known), *_named_by_policies(policies)]
    )
    foreign = _foreign_pods(list(named), {network_release.namespace for network_release, _ in known}, own)
    return World(tuple(network_release for network_release, _ in known), tuple(policies), (*own, *foreign))


# -- pods of the releases ----------------------------------------------------------------------------------------------


def _own(network_release: NetworkRelease, objects: list[Object]) -> Iterator[Pod]:
    made = [pod for item in objects for pod in _of_object(item, network_release)]
    yield from made
    if network_release.chart == "ray-service":
        for role in sorted(set(ROLES) - {pod.role for pod in made}):
            labels = {"rayhelm.dev/service": network_release.name, "rayhelm.dev/role": role}
            yield _pod(network_release, f"{network_release.name}-{role}-of-another-tool", role, labels)


def _of_object(item: Object, network_release: NetworkRelease) -> Iterator[Pod]:
    kind, name = item["kind"], item["metadata"]["name"]
    if kind == "RayService":
        yield from _of_rays(item, network_release)
    elif kind == "Deployment":
        labels = item["spec"]["template"]["metadata"]["labels"]
        role = _DEPLOYMENTS.get(name.removeprefix(f"{network_release.name}-"), network_release.chart)
        for number in (1, 2):
            yield _pod(network_release, f"{name}-{number}", role, labels, item["metadata"]["namespace"])
    elif kind == "CronJob":
        # The Jobs that it creates have the other label.
        for role in ("probe", "probe-worker"):
            labels = {"app.kubernetes.io/name": f"rayhelm-{role}", "app.kubernetes.io/part-of": "rayhelm"}
            for number in (1, 2):
                yield _pod(network_release, f"{role}-{number}", role, labels, item["metadata"]["namespace"])
    elif kind in ("Job", "Pod"):
        labels = (item["spec"]["template"] if kind == "Job" else item)["metadata"]["labels"]
        yield _pod(network_release, name, labels["rayhelm.dev/role"], labels)
    else:
        assert kind in WITHOUT_PODS, f"{kind} {name}: unknown which pods it makes"


def _of_rays(item: Object, network_release: NetworkRelease) -> Iterator[Pod]:
    """Make the pods of two clusters, as during an upgrade, and the pod that empties Redis after one."""
    name, config = item["metadata"]["name"], item["spec"]["rayClusterConfig"]
    head = config["headGroupSpec"]["template"]["metadata"]["labels"]
    for cluster in (f"{name}-old", f"{name}-new"):
        yield _pod(network_release, f"{cluster}-head", "head", head | _kuberay(cluster, "head", "headgroup"))
        for group in config["workerGroupSpecs"]:
            labels = group["template"]["metadata"]["labels"] | _kuberay(cluster, "worker", group["groupName"])
            yield _pod(network_release, f"{cluster}-{group['groupName']}", "worker", labels)
    labels = head | _kuberay(f"{name}-old", "redis-cleanup", "headgroup")
    yield _pod(network_release, f"{name}-old-redis-cleanup", "redis-cleanup", labels)


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


def _pod(network_release: NetworkRelease, name: str, role: str, labels: Labels, namespace: str = "") -> Pod:
    about = network_release.name if network_release.chart == role else f"{network_release.name} {role}"
    release = f"{network_release.chart}/{network_release.name}"
    return Pod(namespace or network_release.namespace, name, labels, about, release, role)


# -- foreign pods ------------------------------------------------------------------------------------------------------


def _named_by_values(network_releases: Iterable[NetworkRelease]) -> Iterator[NamedPods]:
    for network_release in network_releases:
        for allowed in find_allowed_flows(network_release):
            for end in (*allowed.sources, *allowed.targets):
                if isinstance(end, NamedPods) or (isinstance(end, ReleasePods) and end.labels):
                    yield NamedPods(end.namespace, end.labels)


def _named_by_policies(policies: list[Object]) -> Iterator[NamedPods]:
    """List the peers that policies name, which values may not name."""
    for spec in (item["spec"] for item in policies):
        peers = [peer for rule in spec.get("ingress") or [] for peer in rule.get("from") or []]
        peers += [peer for rule in spec.get("egress") or [] for peer in rule.get("to") or []]
        for peer in peers:
            space = peer.get("namespaceSelector", {}).get("matchLabels", {}).get("kubernetes.io/metadata.name")
            if space:
                yield NamedPods(space, tuple(sorted(peer.get("podSelector", {}).get("matchLabels", {}).items())))


def _foreign_pods(named: list[NamedPods], spaces: set[str], own: list[Pod]) -> Iterator[Pod]:
    for number, end in enumerate(named):
        labels = dict(end.labels)
        if not any(pod.namespace == end.namespace and labels.items() <= pod.labels.items() for pod in own):
            yield Pod(end.namespace, f"named-{number}", labels, f"{end.namespace}{_with(labels)}")
        if labels:
            yield Pod(ELSEWHERE, f"like-{number}", labels, f"a pod in {ELSEWHERE}{_with(labels)}")
    for role in {(pod.release, pod.role): pod for pod in own}.values():
        name, about = f"as-{role.namespace}-{role.name}", f"a pod in {ELSEWHERE} labeled as {role.about}"
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
