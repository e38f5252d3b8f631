"""Secrets that pods refer to."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from rayhelm.live.doctor.jwks import JWKS_FILE

__all__ = ["SecretReference", "find_pod_specs", "list_references"]


class SecretReference(NamedTuple):
    """One Secret, and the key in it that a pod reads."""

    namespace: str
    name: str
    key: str
    """Empty if the pod mounts all keys."""
    is_optional: bool
    path: str = ""
    """File of the key in a volume that selects keys."""

    @property
    def is_jwks(self) -> bool:
        """It has the keys of tokens, which have a check of their own."""
        return self.path == JWKS_FILE


def find_pod_specs(item: Any) -> Iterator[dict[str, Any]]:
    """Yield every pod spec inside an object, of whatever kind it is."""
    if isinstance(item, dict):
        if isinstance(item.get("containers"), list):
            yield item
            return
        for value in item.values():
            yield from find_pod_specs(value)
    elif isinstance(item, list):
        for value in item:
            yield from find_pod_specs(value)


def list_references(spec: dict[str, Any], namespace: str) -> Iterator[SecretReference]:
    """Yield the Secrets of a pod spec: of environments, volumes and image pulls."""
    for container in (*(spec.get("initContainers") or []), *spec["containers"]):
        for item in container.get("env") or []:
            if named := (item.get("valueFrom") or {}).get("secretKeyRef"):
                yield _of(named, namespace, named.get("key", ""))
        for item in container.get("envFrom") or []:
            if named := item.get("secretRef"):
                yield _of(named, namespace, "")
    for volume in spec.get("volumes") or []:
        for source in (volume, *((volume.get("projected") or {}).get("sources") or [])):
            if named := source.get("secret"):
                for item in named.get("items") or [{"key": ""}]:
                    yield _of(named, namespace, item["key"])._replace(path=item.get("path", ""))
    for named in spec.get("imagePullSecrets") or []:
        yield _of(named, namespace, ".dockerconfigjson")


def _of(named: dict[str, Any], namespace: str, key: str) -> SecretReference:
    name = named.get("secretName") or named.get("name", "")
    return SecretReference(namespace, name, key, bool(named.get("optional")))
