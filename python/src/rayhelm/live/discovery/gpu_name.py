"""Which GPU a node has, from all labels that name it.

Labels are read from the GPU (feature discovery) or from the machine (cloud providers). All of them must mean the same
GPU: a pool with another GPU would be planned with its memory and its speed.
"""

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from rayhelm.facts import Catalog
from rayhelm.facts.gpu import OWN_SOURCE, GpuKind, Vendor
from rayhelm.facts.gpu_names import find_spelling
from rayhelm.facts.node_labels import NodeLabels, load_node_labels

__all__ = ["find_gpu", "has_gpu_label", "strip_suffix"]

_TOLERANCE = 0.15
"""Largest difference of a label from the nominal memory. Labels have what the driver reports, up to 7 % less (B300:
275040 MiB of 288 GB); the nearest GPUs of one name differ by half (A100: 40 and 80 GB)."""
_PRESENT = {"nvidia.com/gpu.present": "true", "kubernetes.azure.com/accelerator": "nvidia"}
"""Labels of nodes with GPUs of an unknown kind."""


@dataclass(frozen=True)
class _Claim:
    """GPUs that one label means."""

    label: str
    gpus: frozenset[str]

    def __str__(self) -> str:
        return f"{' or '.join(sorted(self.gpus))} (label {self.label})"


class _UnusableNameError(Exception):
    """A label names a GPU that no pool can have."""


def strip_suffix(product: str) -> str:
    """Remove what GPU feature discovery appends to the name of shared and divided GPUs."""
    return re.sub(r"(-MIG-.*)?(-SHARED)?$", "", product)


def has_gpu_label(labels: Mapping[str, str]) -> str:
    """Return a label, `key=value`, that only nodes with GPUs have; empty if there is none."""
    for table in load_node_labels().values():
        for key, text in table.list_names(labels):
            if table.count or table.decides or table.find(text):
                return f"{key}={text}"
    return next((f"{key}={value}" for key, value in _PRESENT.items() if labels.get(key) == value), "")


def find_gpu(
    labels: Mapping[str, str], resources: Set[str], vendor: Vendor, facts: Catalog, *, is_divided: bool = False
) -> GpuKind | str:
    """Return the GPU, or why it is not known. `is_divided`: labels have the memory of a part, and say nothing about the
    whole GPU."""
    unknown: list[tuple[str, str]] = []
    try:
        claims = list(_list_claims(labels, vendor, facts, unknown))
    except _UnusableNameError as error:
        return str(error)
    if not claims:
        return _explain_no_name(resources, unknown)
    found = frozenset.intersection(*(claim.gpus for claim in claims))
    if not found:
        return f"its labels name different GPUs: {'; '.join(map(str, claims))}"
    gpus = [facts.gpu(name) for name in sorted(found)]
    for key, gib in () if is_divided else _list_memory(labels, vendor):
        fitting = [gpu for gpu in gpus if _has_memory(gpu, gib)]
        if not fitting:
            return (
                f"label {key} has {gib:g} GiB for each GPU, and {claims[0]} has {gpus[0].memory_gb:g} GB: another GPU,"
                " or a part of one"
            )
        gpus = fitting
    if len(gpus) > 1:
        return (
            f"it can have {' or '.join(gpu.id for gpu in gpus)} (label {claims[0].label}), and no label has its memory"
        )
    return gpus[0]


def _list_claims(
    labels: Mapping[str, str], vendor: Vendor, facts: Catalog, unknown: list[tuple[str, str]]
) -> Iterator[_Claim]:
    """Yield a claim for each label whose value is known. Adds the others to `unknown`."""
    own = [gpu for gpu in facts.gpus() if gpu.vendor == vendor]
    for gpu in own:
        key, _, value = gpu.identifying_label.partition("=")
        if key and labels.get(key) == value:
            yield _Claim(gpu.identifying_label, frozenset({gpu.id}))
    for name, table in load_node_labels().items():
        if table.decides and name != vendor:
            continue
        for key, text in table.list_names(labels):
            gpus = _find_named(table, key, text, own)
            if gpus:
                yield _Claim(f"{key}={text}", frozenset(gpus))
            elif gpus is None:
                unknown.append((key, text))
                if table.decides:
                    raise _UnusableNameError(_explain_unknown(key, text))


def _find_named(table: NodeLabels, key: str, text: str, own: list[GpuKind]) -> list[str] | None:
    """Return the GPUs of the vendor that a value means; none if it is the identifying label of one, or if they are of
    another vendor; None if the value is unknown."""
    name = strip_suffix(text) if key == "nvidia.com/gpu.product" else text
    # A GPU of the fleet file can have the name of one of the catalog, with another memory: its label then decides.
    described = [gpu.id for gpu in own if gpu.source == OWN_SOURCE and gpu.product_label == name]
    if described:
        alike = table.find(name)
        known = [gpu.id for gpu in own if gpu.product_label == name or (alike and gpu.id in alike.gpus)]
        return [*described, *(each for each in known if each not in described)]
    if any(gpu.identifying_label == f"{key}={name}" for gpu in own):
        return []
    if found := table.find(name):
        if found.reason:
            raise _UnusableNameError(f"{found.reason} (label {key}={text})")
        return [gpu.id for gpu in own if gpu.id in found.gpus]
    if key != "nvidia.com/gpu.product":
        return None
    exact = next((gpu for gpu in own if gpu.product_label == name), None) or find_spelling(name, own)
    return [exact.id] if exact else None


def _list_memory(labels: Mapping[str, str], vendor: Vendor) -> Iterator[tuple[str, float]]:
    for name, table in load_node_labels().items():
        if not table.decides or name == vendor:
            yield from table.list_memory(labels)


def _has_memory(gpu: GpuKind, gib: float) -> bool:
    """Return whether a label can mean this GPU. The memory of GPUs that share that of the host is a setting."""
    return gpu.memory_gb is None or gpu.unified_memory or abs(gib / gpu.memory_gb - 1) <= _TOLERANCE


def _explain_no_name(resources: Set[str], unknown: list[tuple[str, str]]) -> str:
    """Return why no label names the GPU. A resource does not: `habana.ai/gaudi` is that of three generations."""
    named = [(key, text) for key, text in unknown if key not in load_node_labels()["instance-types"].name]
    if named:
        return _explain_unknown(*named[0])
    seen = (
        f", and the catalog does not know {' and '.join(f'{key}={text}' for key, text in unknown)}" if unknown else ""
    )
    return f"it offers {', '.join(sorted(resources))} and has no label with the name of its GPU{seen}"


def _explain_unknown(key: str, text: str) -> str:
    return f"the catalog has no GPU `{text}` (label {key})"
