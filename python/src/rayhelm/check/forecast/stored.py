"""Bring a RayService into the form in which KubeRay compares it.

A rendered manifest leaves out defaults of the CRD, and a stored one has them. KubeRay compares the JSON that Go writes,
in which some empty values are missing.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from rayhelm.check.forecast.edits import match_path
from rayhelm.facts.closed import Closed
from rayhelm.facts.quantities import read_quantity
from rayhelm.facts.versions import is_at_least

__all__ = ["FieldFacts", "list_dropped_fields", "load_field_facts", "store"]


class FieldFacts(Closed):
    """The file `data/kuberay/fields.yaml`, which documents its keys."""

    since: dict[str, str]
    gates: dict[str, str]
    incremental: tuple[str, ...]
    empty_maps: frozenset[str]
    empty_texts: frozenset[str]
    false_flags: frozenset[str]
    zero_numbers: frozenset[str]


@cache
def load_field_facts() -> FieldFacts:
    return FieldFacts.model_validate(yaml.safe_load(files("rayhelm").joinpath("data/kuberay/fields.yaml").read_bytes()))


def store(service: Mapping[str, Any], kuberay: str) -> dict[str, Any]:
    """Return metadata and spec of a RayService as an API server with the CRD of this version stores them, without the
    values that KubeRay treats as missing."""
    metadata = service.get("metadata", {})
    kept = {key: dict(metadata[key]) for key in ("labels", "annotations") if metadata.get(key)}
    spec = _clean(service.get("spec", {}), "spec", "spec", kuberay)
    _set_defaults(spec.get("rayClusterConfig", {}), kuberay)
    return {"metadata": kept, "spec": spec}


def list_dropped_fields(service: Mapping[str, Any], kuberay: str) -> list[str]:
    """Return the paths of fields that the CRD of this version does not have; the API server drops them."""
    return [path for path in load_field_facts().since if not _is_known(path, kuberay) and _has(service, path)]


def _clean(value: Any, key: str, path: str, kuberay: str) -> Any:
    if isinstance(value, Mapping):
        below = {
            name: _clean(item, name, _join(path, name), kuberay)
            for name, item in value.items()
            if item is not None and _is_known(_join(path, name), kuberay)
        }
        if key in _QUANTITIES:
            return {name: _name_quantity(item) for name, item in below.items()}
        return {name: item for name, item in below.items() if not _is_missing(name, item, key)}
    if isinstance(value, list):
        return [_clean(item, key, path, kuberay) for item in value]
    return value


_QUANTITIES = ("limits", "requests", "overhead")


def _name_quantity(value: Any) -> str:
    """Return one spelling for all spellings of a quantity; other values as they are."""
    number = read_quantity(value)
    return str(value) if number is None else f"{float(number):.6g}" if number < 1e6 else str(round(number))


def _is_missing(key: str, value: Any, parent: str) -> bool:
    """Return whether Go writes the value like a missing field.

    `rayStartParams: {}` is written, and so are empty objects behind a pointer, such as `authOptions: {}`.
    """
    facts = load_field_facts()
    if value == []:
        return True
    if value == {}:
        return key in facts.empty_maps and parent != "autoscalerOptions"
    if value == "":
        # Maps of the user, such as labels, keep their empty texts.
        return key in facts.empty_texts and parent not in (*facts.empty_maps, "rayStartParams")
    if value is False:
        return key in facts.false_flags
    return value == 0 and type(value) is int and key in facts.zero_numbers


_GROUP_DEFAULTS = {"replicas": 0, "minReplicas": 0, "maxReplicas": 2**31 - 1, "numOfHosts": 1}


def _set_defaults(cluster: dict[str, Any], kuberay: str) -> None:
    """Set the defaults of the CRD, and the objects that Go always writes."""
    groups = cluster.get("workerGroupSpecs", [])
    for group in groups:
        for key, value in _GROUP_DEFAULTS.items():
            group.setdefault(key, value)
        group.setdefault("scaleStrategy", {})
        if is_at_least(kuberay, "1.7.0"):
            group.setdefault("priority", 0)
    for pods in (cluster.get("headGroupSpec", {}), *groups):
        template = pods.setdefault("template", {})
        template.setdefault("metadata", {})
        spec = template.setdefault("spec", {})
        for container in (*spec.get("containers", []), *spec.get("initContainers", [])):
            container.setdefault("resources", {})
            for port in container.get("ports", []):
                port.setdefault("protocol", "TCP")


def _is_known(path: str, kuberay: str) -> bool:
    since = load_field_facts().since.get(path)
    return since is None or is_at_least(kuberay, since)


def _join(path: str, key: str) -> str:
    """Return the path without names: head and worker groups are `*`."""
    if path == "spec.rayClusterConfig" and key in ("headGroupSpec", "workerGroupSpecs"):
        return f"{path}.*"
    return f"{path}.{key}"


def _has(value: Any, pattern: str, path: str = "") -> bool:
    if isinstance(value, list):
        return any(_has(item, pattern, path) for item in value)
    if not isinstance(value, Mapping):
        return False
    below = {key: (_join(path, key) if path else key) for key in value}
    return any(
        name == pattern or (match_path(name, pattern) and _has(value[key], pattern, name))
        for key, name in below.items()
    )
