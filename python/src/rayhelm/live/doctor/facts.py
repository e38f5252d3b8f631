"""What the checks read: the cluster, the rendered fleet and Prometheus. Every list is read once."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rayhelm.errors import RayhelmError
from rayhelm.facts.versions import get_kuberay_namespace
from rayhelm.live.cluster import kinds
from rayhelm.live.cluster.fields import MalformedError, parse_object, parse_objects
from rayhelm.live.cluster.kinds import Kind
from rayhelm.live.cluster.reader import AbsentError, ClusterReader, ReadError

if TYPE_CHECKING:
    from rayhelm.deploy.render.files import Rendered
    from rayhelm.live.cost.client import PrometheusClient

__all__ = ["PART_OF", "Facts", "Object", "find_condition", "labels_of", "namespace_of"]

Object = dict[str, Any]
PART_OF = ("app.kubernetes.io/part-of", "rayhelm")
"""Label of the objects of all charts."""
_CLUSTER_WIDE = {kind.name for kind in kinds.RENDERED if not kind.is_namespaced}


@dataclass
class Facts:
    """One cluster at one time."""

    reader: ClusterReader
    rendered: "Rendered | None" = None
    region: str = ""
    """Name of this cluster in the fleet."""
    prometheus: "PrometheusClient | None" = None
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    malformed: dict[Kind, list[MalformedError]] = field(default_factory=dict)
    """Objects that are in no list, because a field that the checks read has another type."""
    _lists: dict[Kind, list[Object] | ReadError] = field(default_factory=dict)

    def prefetch(self, wanted: set[Kind], show: Callable[[str], None]) -> None:
        """Read the lists of all kinds, several at a time."""

        def read(kind: Kind) -> None:
            show(f"reading {kind.plural}")
            try:
                self._lists[kind], self.malformed[kind] = parse_objects(kind, self.reader.list(kind))
            except AbsentError:
                # A missing CRD is the finding of one check; for the others there are no such objects.
                self._lists[kind] = []
            except ReadError as error:
                self._lists[kind] = error
            except RayhelmError:
                raise  # the cluster does not answer
            except Exception as error:
                self._lists[kind] = ReadError(f"the list of {kind.plural} cannot be read: {type(error).__name__}")

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(read, sorted(wanted)))

    def get_all(self, kind: Kind, namespaces: "set[str] | None" = None) -> "list[Object]":
        """Return the objects of a kind, of some namespaces or of all. Raises ReadError if they cannot be read."""
        if kind not in self._lists:
            self.prefetch({kind}, lambda text: None)
        found = self._lists[kind]
        if isinstance(found, ReadError):
            raise found
        return [item for item in found if namespaces is None or namespace_of(item) in namespaces]

    def find(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """Return one object of the list, or None."""
        return next((item for item in self.get_all(kind, {namespace}) if item["metadata"]["name"] == name), None)

    def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """Return one object of a kind that is not listed. Raises ReadError and MalformedError."""
        return parse_object(kind, self.reader.get(kind, quote(name, safe=""), namespace))

    @cached_property
    def namespaces(self) -> set[str]:
        """Namespaces with parts of a rayhelm installation: the rest of the cluster belongs to others."""
        key, value = PART_OF
        found = {namespace_of(item) for item in self.get_all(kinds.RAY_SERVICES)}
        for kind in (kinds.DEPLOYMENTS, kinds.RESOURCE_QUOTAS):
            found |= {namespace_of(item) for item in self.get_all(kind) if labels_of(item).get(key) == value}
        if self.rendered:
            found |= {each.namespace for each in self.rendered.releases if each.cluster == self.region}
        return found - {""}

    @cached_property
    def tenant_namespaces(self) -> set[str]:
        """Namespaces of the fleet's services in this cluster, in which tenants may create objects with any label; empty
        without a fleet."""
        releases = self.rendered.releases if self.rendered else ()
        return {each.namespace for each in releases if each.chart == "ray-service" and each.cluster == self.region}

    def find_operators(self, is_operator: Callable[[Object], bool]) -> "list[Object]":
        """Return the Deployments of the KubeRay operator; one of a tenant is none, whatever its labels are."""
        excluded = self.tenant_namespaces - {self.kuberay_namespace}
        found = self.get_all(kinds.DEPLOYMENTS)
        return [item for item in found if namespace_of(item) not in excluded and is_operator(item)]

    @property
    def kuberay_namespace(self) -> str:
        """Namespace of the KubeRay operator by the fleet file, else the default one."""
        if not self.rendered:
            return get_kuberay_namespace()
        return self.rendered.plan.declared.clusters[self.region].kuberay_operator.namespace

    @cached_property
    def manifests(self) -> "list[Object]":
        """Objects that the fleet renders for this cluster; empty without a fleet. Raises MissingError without helm."""
        return [item for _, items in self.releases for item in items]

    @cached_property
    def releases(self) -> "list[tuple[str, list[Object]]]":
        """The same by the file of the release's values: `ray-service/chat.yaml`."""
        from rayhelm.deploy.charts.helm import template
        from rayhelm.deploy.values.emit import select_changed

        mine = [each for each in self.rendered.releases if each.cluster == self.region] if self.rendered else []

        def render(each: Any) -> "list[Object]":
            values = select_changed(each.values)
            return template(each.chart, each.name, each.namespace, values, kube_version=each.kubernetes)

        with ThreadPoolExecutor(4) as pool:
            rendered = list(pool.map(render, mine))
        return [
            (each.file, [_complete(item, each.namespace) for item in items if not _is_hook(item)])
            for each, items in zip(mine, rendered, strict=True)
        ]

    def age_s(self, time: str) -> float:
        """Return seconds since a time of the API server; 0 without a time."""
        return (self.now - datetime.fromisoformat(time)).total_seconds() if time else 0.0

    def age_of(self, item: Mapping[str, Any]) -> float:
        """Return seconds since an object was created."""
        return self.age_s(item["metadata"].get("creationTimestamp", ""))

    def age_of_event(self, event: Mapping[str, Any]) -> float:
        """Return seconds since an event happened last."""
        return self.age_s(str(event.get("lastTimestamp") or event.get("eventTime") or ""))


def find_condition(item: Mapping[str, Any], name: str) -> Object:
    """Return a condition of an object; empty if it does not have it."""
    conditions = item.get("status", {}).get("conditions") or []
    return next((dict(found) for found in conditions if found.get("type") == name), {})


def labels_of(item: Mapping[str, Any]) -> dict[str, str]:
    return (item.get("metadata") or {}).get("labels") or {}


def namespace_of(item: Mapping[str, Any]) -> str:
    return str(item["metadata"].get("namespace", ""))


def _complete(item: Object, namespace: str) -> Object:
    """An object with the namespace that Helm gives it."""
    if item["kind"] in _CLUSTER_WIDE or item["metadata"].get("namespace"):
        return item
    return {**item, "metadata": {**item["metadata"], "namespace": namespace}}


def _is_hook(item: Object) -> bool:
    return any(key.startswith("helm.sh/hook") for key in item["metadata"].get("annotations") or {})
