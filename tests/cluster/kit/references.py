"""What a pod refers to and must exist: KWOK makes a pod Ready without it, a kubelet does not."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from cluster.kit.cluster import Cluster, Object

__all__ = ["Reference", "missing_references", "references", "stand_for"]


class Reference(NamedTuple):
    """An object that a pod needs, and the key in it where it needs one."""

    kind: str
    name: str
    key: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" + (f", key {self.key}" if self.key else "")


CLUSTER_WIDE = ("PriorityClass", "RuntimeClass", "PersistentVolume")


def missing_references(cluster: Cluster, pod: Object) -> list[str]:
    """Everything that a pod mentions and the API server does not have."""
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    return [f"{name}: {found}" for found in references(pod["spec"]) if not _is_there(cluster, found, namespace)]


def references(spec: Object) -> set[Reference]:
    """Of a pod's spec: all of its containers, volumes and classes."""
    containers = [*spec.get("initContainers", []), *spec["containers"], *spec.get("ephemeralContainers", [])]
    found = {reference for container in containers for reference in _of_environment(container)}
    found |= {reference for volume in spec.get("volumes", []) for reference in _of_volume(volume)}
    found |= {Reference("Secret", item["name"]) for item in spec.get("imagePullSecrets", [])}
    named = {
        "ServiceAccount": spec.get("serviceAccountName"),
        "PriorityClass": spec.get("priorityClassName"),
        "RuntimeClass": spec.get("runtimeClassName"),
    }
    return found | {Reference(kind, name) for kind, name in named.items() if name}


def stand_for(values: Mapping[str, Any]) -> list[Object]:
    """The Secrets and ConfigMaps that a release's values say are the user's: `{name, key}` below a field that ends in
    `Secret`, certificates of the gateway, and the authorities of others."""
    return [
        *(
            _object("Secret", item["name"], {item.get("key", "token"): "a secret of the user's"})
            for item in _secrets(values)
        ),
        *(
            _object("Secret", name, {"tls.crt": "a certificate", "tls.key": "its key"})
            for name in values.get("exposure", {}).get("tls", {}).get("secretNames", [])
        ),
        *(
            _object("ConfigMap", authority["configMapName"], {authority.get("key") or "ca.crt": "an authority"})
            for remote in values.get("remoteGateways", {}).values()
            if (authority := remote.get("certificateAuthority", {})).get("configMapName")
        ),
    ]


def _object(kind: str, name: str, data: Mapping[str, str]) -> Object:
    field = "stringData" if kind == "Secret" else "data"
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, field: dict(data)}


def _secrets(values: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(values, Mapping):
        return
    for field, value in values.items():
        if field.endswith("Secret") and isinstance(value, Mapping) and value.get("name"):
            yield value
        else:
            yield from _secrets(value)


def _of_environment(container: Object) -> Iterator[Reference]:
    for item in container.get("env", []):
        source = item.get("valueFrom", {})
        for field, kind in (("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")):
            if (named := source.get(field)) and not named.get("optional"):
                yield Reference(kind, named["name"], named["key"])
    for item in container.get("envFrom", []):
        for field, kind in (("secretRef", "Secret"), ("configMapRef", "ConfigMap")):
            if (named := item.get(field)) and not named.get("optional"):
                yield Reference(kind, named["name"])


def _of_volume(volume: Object) -> Iterator[Reference]:
    if claim := volume.get("persistentVolumeClaim"):
        yield Reference("PersistentVolumeClaim", claim["claimName"])
    for source in (volume, *volume.get("projected", {}).get("sources", [])):
        for field, kind, name in (("secret", "Secret", "secretName"), ("configMap", "ConfigMap", "name")):
            if (named := source.get(field)) and not named.get("optional"):
                keys = [item["key"] for item in named.get("items", [])] or [""]
                yield from (Reference(kind, named.get(name) or named["name"], key) for key in keys)


def _is_there(cluster: Cluster, wanted: Reference, namespace: str) -> bool:
    found = cluster.find(wanted.kind, wanted.name, "" if wanted.kind in CLUSTER_WIDE else namespace)
    if found is None:
        return False
    return not wanted.key or wanted.key in found.get("data", {})
