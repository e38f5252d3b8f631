"""The API server, asked in the words of the tests."""

import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, NamedTuple

import yaml
from pykube import HTTPClient
from pykube.objects import APIObject, object_factory

from cluster.kit.place import Testbed
from cluster.kit.wait import eventually
from rayhelm.live.cluster.kubectl import Kubectl, KubectlError
from testbed.tools import program

__all__ = ["RESTRICTED", "Cluster", "Object", "condition", "reason"]

Object = dict[str, Any]

RESTRICTED = {
    "pod-security.kubernetes.io/enforce": "restricted",
    "pod-security.kubernetes.io/enforce-version": "latest",
}

VERSIONS = {
    **dict.fromkeys(("RayService", "RayCluster", "RayJob"), "ray.io/v1"),
    **dict.fromkeys(("Role", "RoleBinding"), "rbac.authorization.k8s.io/v1"),
    "ScaledObject": "keda.sh/v1alpha1",
    **dict.fromkeys(("Application", "AppProject", "ApplicationSet"), "argoproj.io/v1alpha1"),
    "APIService": "apiregistration.k8s.io/v1",
    "Deployment": "apps/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "EndpointSlice": "discovery.k8s.io/v1",
    "Job": "batch/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "RuntimeClass": "node.k8s.io/v1",
    "StorageClass": "storage.k8s.io/v1",
}
"""Of kinds that are not of the core group."""

DERIVED = ("endpoints", "endpointslices", "events")
NOT_READY = "node.kubernetes.io/"
"""Prefix of the taints of a node that is not ready, not reachable, cordoned or under pressure."""
EVERYWHERE = (("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default"))


class ListedKind(NamedTuple):
    """A kind of objects in namespaces."""

    name: str
    """Plural."""
    version: str
    """Group and version: `apps/v1`."""
    kind: str


class Cluster:
    """One API server, as its administrator."""

    def __init__(self, api: HTTPClient, place: Testbed) -> None:
        self.api = api
        self.place = place
        self.kubectl = Kubectl(program("kubectl"), place.kubeconfig)
        self._kinds: dict[str, type[APIObject]] = {}

    # -- objects ---------------------------------------------------------------------------------------------------

    def all(self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None) -> list[Object]:
        """Objects of a kind, of all namespaces where none is named."""
        found = self._kind(kind).objects(self.api)
        where = {"namespace": namespace} if namespace else {}
        return [item.obj for item in found.filter(selector=dict(labels or {}), **where)]

    def find(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """One object; None where it is not there."""
        found = self._kind(kind).objects(self.api)
        found = found.filter(namespace=namespace) if namespace else found
        item = found.get_or_none(name=name)
        return item and item.obj

    def one(self, kind: str, name: str, namespace: str = "") -> Object:
        found = self.find(kind, name, namespace)
        assert found, f"no {kind} {name} in {namespace}"
        return found

    def everything(self, namespace: str) -> list[Object]:
        """All objects of all kinds that users made: not what every namespace has, nor what Helm and the API server
        note down beside."""
        # Not by kubectl: 55 kinds take it 0.5 s of CPU time, and tests ask again and again.
        items = (item for kind in self._namespaced_kinds for item in self._list(kind, namespace))
        return [item for item in items if not _is_beside(item)]

    def apply(self, *objects: Object, namespace: str = "", options: Iterable[str] = ()) -> str:
        """Server-side apply. Raises KubectlError with the API server's words."""
        where = [f"--namespace={namespace}"] if namespace else []
        text = yaml.safe_dump_all(objects)
        return self.kubectl("apply", "--server-side", "--force-conflicts", *where, *options, "-f", "-", text=text)

    def create(self, item: Object) -> None:
        """A plain POST: the API server drops what it does not know. Raises pykube's HTTPError with its words."""
        self._kind(item["kind"])(self.api, item).create()

    def patch(self, kind: str, name: str, namespace: str, change: Object | list[Object]) -> None:
        """A merge patch, or a JSON patch where `change` is a list."""
        form = "json" if isinstance(change, list) else "merge"
        where = f"--namespace={namespace}"
        self.kubectl("patch", kind, name, where, f"--type={form}", "--patch", json.dumps(change))

    def delete(self, kind: str, name: str, namespace: str = "", *options: str) -> None:
        """Returns before the object is gone."""
        where = [f"--namespace={namespace}"] if namespace else []
        self.kubectl("delete", kind, name, *where, "--wait=false", "--ignore-not-found", *options)

    # -- places ----------------------------------------------------------------------------------------------------

    @contextmanager
    def namespace(self, labels: Mapping[str, str] = RESTRICTED, *, name: str = "") -> Iterator[str]:
        """A namespace, of a name that nothing else has unless one is given; gone soon after the block."""
        if name:
            # An earlier one of this name may still be terminating: it takes no objects.
            eventually(lambda: not self._is_terminating(name), f"the end of an earlier namespace {name}")
        name = name or f"t-{uuid.uuid4().hex[:10]}"
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels)}})
        eventually(lambda: self.find("ServiceAccount", "default", name), f"the default service account of {name}")
        try:
            yield name
        finally:
            self._end_what_empties_redis(name)
            self.delete("namespace", name)

    @contextmanager
    def machines(self, objects: Iterable[Object]) -> Iterator[None]:
        """Simulated nodes and volumes, for as long as the block runs."""
        objects = [_with_own_name(item) for item in objects]
        self.apply(*objects)
        nodes = {item["metadata"]["name"] for item in objects if item["kind"] == "Node"}
        try:
            eventually(lambda: self.take_pods(nodes), f"nodes {nodes} being Ready")
            yield
        finally:
            text = yaml.safe_dump_all(objects)
            self.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", text=text)

    # -- states ----------------------------------------------------------------------------------------------------

    def is_ready(self, kind: str, name: str, namespace: str = "") -> bool:
        found = self.find(kind, name, namespace)
        return found is not None and condition(found, "Ready") == "True"

    def take_pods(self, nodes: Collection[str]) -> bool:
        """Whether nodes are Ready, and without the taint that the controllers remove a moment later."""
        there = {item["metadata"]["name"]: item for item in self.all("Node") if item["metadata"]["name"] in nodes}
        return len(there) == len(nodes) and all(map(_takes_pods, there.values()))

    def becomes_ready(self, name: str, namespace: str) -> Object:
        """Waits for a RayService; KubeRay must never call it wrong on the way."""

        def ready() -> Object | None:
            found = self.one("RayService", name, namespace)
            assert reason(found, "Ready") != "ValidationFailed", found["status"]["conditions"]
            return found if condition(found, "Ready") == "True" else None

        return eventually(ready, f"RayService {name} being Ready", shows=lambda: self.tell(namespace))

    def tell(self, namespace: str) -> str:
        """What a person would look at first."""
        kinds = "rayservices,rayclusters,pods,persistentvolumeclaims,jobs"
        where = f"--namespace={namespace}"
        return self.kubectl("get", kinds, where) + self.kubectl("get", "events", where, "--sort-by=.lastTimestamp")

    @cached_property
    def _namespaced_kinds(self) -> list[ListedKind]:
        rows = self.kubectl("api-resources", "--namespaced", "--verbs=list", "--no-headers").splitlines()
        # Columns: name, short names (may be empty), version, namespaced, kind.
        found = [(words[0], *words[-3:]) for words in map(str.split, rows)]
        return [ListedKind(name, version, kind) for name, version, _, kind in found if name not in DERIVED]

    def _list(self, kind: ListedKind, namespace: str) -> list[Object]:
        answer = self.api.get(version=kind.version, namespace=namespace, url=kind.name)
        answer.raise_for_status()
        return [{"apiVersion": kind.version, "kind": kind.kind, **item} for item in answer.json()["items"]]

    def _end_what_empties_redis(self, namespace: str) -> None:
        """KubeRay empties Redis by a Job, which a namespace that is going would refuse: both would wait forever.
        There is no Redis here, so nothing waits for the Job."""
        clusters = self.all("RayCluster", namespace)
        held = [item["metadata"]["name"] for item in clusters if "redis" in str(item["metadata"].get("finalizers"))]
        if not held:
            return
        where = (f"--namespace={namespace}", "--ignore-not-found", "--wait=false")
        self.kubectl("delete", "rayservices", "--all", *where)
        self.kubectl("delete", "rayclusters", *held, *where)
        for name in held:
            with suppress(KubectlError):  # gone meanwhile
                self.patch("raycluster", name, namespace, {"metadata": {"finalizers": None}})

    def _is_terminating(self, namespace: str) -> bool:
        found = self.find("Namespace", namespace)
        return found is not None and "deletionTimestamp" in found["metadata"]

    def _kind(self, kind: str) -> type[APIObject]:
        if kind not in self._kinds:
            self._kinds[kind] = object_factory(self.api, VERSIONS.get(kind, "v1"), kind)
        return self._kinds[kind]


def _with_own_name(item: Object) -> Object:
    """A volume of an earlier test stays for as long as its claim: another one of its name would go with it."""
    if item["kind"] != "PersistentVolume":
        return item
    return {**item, "metadata": {**item["metadata"], "name": f"{item['metadata']['name']}-{uuid.uuid4().hex[:6]}"}}


def _takes_pods(node: Object) -> bool:
    taints = {taint["key"] for taint in node["spec"].get("taints", [])}
    return condition(node, "Ready") == "True" and not any(key.startswith(NOT_READY) for key in taints)


def _is_beside(item: Object) -> bool:
    return (item["kind"], item["metadata"]["name"]) in EVERYWHERE or item.get("type") == "helm.sh/release.v1"


def condition(item: Object, name: str) -> str:
    """`True`, `False`, `Unknown`, or empty where the object does not have it."""
    return str(_condition(item, name).get("status", ""))


def reason(item: Object, name: str) -> str:
    return str(_condition(item, name).get("reason", ""))


def _condition(item: Object, name: str) -> Object:
    conditions = item.get("status", {}).get("conditions", [])
    return next((found for found in conditions if found["type"] == name), {})
