"""Objects that stay although NEW does not render them, and what they go on costing."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rayhelm.check.diff.report import KeptObject

__all__ = ["list_kept_objects"]

Object = Mapping[str, Any]
_HELM, _ARGO_CD = "Helm", "Argo CD"
_SHORT = {"PersistentVolumeClaim": "pvc"}


def list_kept_objects(removed: Iterable[Object], namespace: str, *, is_uninstalled: bool) -> Iterator[KeptObject]:
    """Yield the removed objects that Helm or Argo CD keeps, those with a cost first. `is_uninstalled`: the release
    leaves; otherwise it stays without these objects."""
    found = [_describe(item, namespace, is_uninstalled=is_uninstalled) for item in removed]
    yield from sorted((each for each in found if each.kept_by), key=lambda each: not each.costs)


def _describe(item: Object, namespace: str, *, is_uninstalled: bool) -> KeptObject:
    kind, name = item["kind"], item["metadata"]["name"]
    inside = "" if kind == "Namespace" else f" -n {item['metadata'].get('namespace') or namespace}"
    return KeptObject(
        object=f"{kind} {name}",
        kept_by=tuple(_list_keepers(item, is_uninstalled=is_uninstalled)),
        costs=_find_costs(item),
        removal=f"kubectl delete {_SHORT.get(kind, kind.lower())} {name}{inside}",
    )


def _list_keepers(item: Object, *, is_uninstalled: bool) -> Iterator[str]:
    """Yield the tools that keep an object. Argo CD deletes the objects of an Application that leaves, and prunes those
    that leave one: two options. It reads Helm's annotation for the first only."""
    annotations = item["metadata"].get("annotations") or {}
    options = {each.strip() for each in str(annotations.get("argocd.argoproj.io/sync-options", "")).split(",")}
    is_kept_by_helm = annotations.get("helm.sh/resource-policy") == "keep"
    if is_kept_by_helm:
        yield _HELM
    if (is_uninstalled and (is_kept_by_helm or "Delete=false" in options)) or (
        not is_uninstalled and "Prune=false" in options
    ):
        yield _ARGO_CD


def _find_costs(item: Object) -> str:
    spec = item.get("spec") or {}
    if item["kind"] == "PersistentVolumeClaim":
        size = spec.get("resources", {}).get("requests", {}).get("storage", "its volume")
        storage = spec.get("storageClassName")
        return f"{size} of storage class `{storage}`" if storage else f"{size} of the default storage class"
    if item["kind"] == "RayService":
        return "the GPUs of its Ray cluster"
    return "a load balancer" if item["kind"] == "Service" and spec.get("type") == "LoadBalancer" else ""
