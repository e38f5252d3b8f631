"""How many GPUs a node has, and how they are shared or divided.

A node offers units of a resource: GPUs, time slices or instances. Labels have the number of GPUs. Where both do not
agree the node is left out: units that are taken for GPUs are planned with the memory of a whole GPU each.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from rayhelm.facts import Catalog
from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.node_labels import load_node_labels
from rayhelm.facts.parts import MOST_SLICES
from rayhelm.live.discovery.hami import REGISTER, count_registered
from rayhelm.live.discovery.node import ClusterNode
from rayhelm.live.discovery.resources import AMD_PARTITION, MIG

__all__ = ["Units", "count_units", "explain_division", "find_single_profile"]

_WHOLE, _SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"
_PRODUCT = "nvidia.com/gpu.product"
_MOST_GPUS = 64
"""Bound of `gpusPerNode`."""
_UNSHARED = ("", "none")
Labels = Iterator[tuple[str, str]]


@dataclass(frozen=True)
class Units:
    """GPUs of a node."""

    gpus: int
    resource: str
    """Extended resource that pods request; of MIG instances by `layout` only if it is not that of the profile."""
    slices: int = 0
    """Time slices of each GPU; 0 for whole GPUs."""
    layout: Mapping[str, int] = field(default_factory=dict)
    """MIG instances of each GPU, by profile."""
    note: str = ""
    """What was concluded, for a comment."""


def find_single_profile(labels: Mapping[str, str]) -> str:
    """Return the MIG profile of all instances that are offered as `nvidia.com/gpu` (strategy `single`); empty without
    it."""
    _, divided, profile = labels.get(_PRODUCT, "").removesuffix("-SHARED").partition("-MIG-")
    return profile if divided else next((text for _, text in _list_labels("mig_profile", labels)), "")


def explain_division(labels: Mapping[str, str], resources: Mapping[str, int]) -> str:
    """Return why no plan can have the parts of these GPUs; empty if it can."""
    if labels.get("nvidia.com/vgpu.present") == "true":
        return (
            f"its GPUs are vGPUs, parts of GPUs with memory of their own ({labels.get(_PRODUCT, 'no product label')})"
        )
    if find_single_profile(labels) == "INVALID":
        return f"MIG strategy `single` needs equal instances on all of its GPUs (label {_PRODUCT}={labels[_PRODUCT]})"
    for key, text in _list_labels("sharing", labels):
        if text == "mps":
            return f"MPS limits the memory of each pod, and plans have time slices or MIG (label {key}=mps)"
    partitions = {match["partition"]: key for key in resources if (match := AMD_PARTITION.match(key))}
    partitions |= {text.lower(): f"label {key}" for key, text in _list_labels("partition", labels)}
    divided = [f"{partition} ({seen})" for partition, seen in partitions.items() if not partition.startswith("spx_")]
    if divided:
        return f"its GPUs are divided into partitions, and plans have whole GPUs of AMD only: {', '.join(divided)}"
    return ""


def count_units(gpu: GpuKind, node: ClusterNode, resources: Mapping[str, int], facts: Catalog) -> Units | str:
    """Return the GPUs of a node, or why they are not known."""
    found = _count(gpu, node, resources, facts)
    if isinstance(found, Units) and found.gpus > _MOST_GPUS:
        return f"it offers {found.gpus} GPUs, and a pool has at most {_MOST_GPUS} in a node: they are parts"
    return found


def _count(gpu: GpuKind, node: ClusterNode, resources: Mapping[str, int], facts: Catalog) -> Units | str:
    migs = {key: match for key in resources if (match := MIG.match(key))}
    others = {key: count for key, count in resources.items() if key not in migs}
    if migs and others:
        return f"some of its GPUs are divided and others are whole ({_format(resources)}); a pool has one kind"
    if migs:
        return _count_instances(gpu, node, {match["profile"]: resources[key] for key, match in migs.items()}, facts)
    if profile := find_single_profile(node.labels):
        if set(resources) != {_WHOLE}:
            return f"its MIG instances of {profile} are offered in a way that is not known: {_format(resources)}"
        return _count_single(gpu, node, profile, resources[_WHOLE], facts)
    resource = gpu.resource if gpu.resource in resources else next(iter(resources))
    if len(resources) > 1 and (gpu.vendor != "intel" or gpu.resource not in resources):
        return f"it offers several resources ({_format(resources)}); a pool has one"
    units = resources[resource]
    if strategy := _find_strategy(node.labels) or (_SHARED in resources and f"resource {_SHARED}"):
        slices = _find_slices(node.labels)
        if slices < 2:
            return f"its GPUs are shared ({strategy}), and no label has the number of pods (nvidia.com/gpu.replicas)"
        return _count_slices(units, slices, resource, node.labels)
    if gpu.vendor == "intel":
        return _count_intel(gpu, units, resource, node.labels)
    return _count_whole(gpu, units, resource, node)


def _count_whole(gpu: GpuKind, units: int, resource: str, node: ClusterNode) -> Units | str:
    if REGISTER in node.metadata.annotations:
        return _count_registered(units, resource, node)
    counts = list(_list_counts(gpu, node.labels))
    for key, count in counts:
        if units > count:
            return (
                f"it offers {units} {resource}, and label {key}={count}: other GPUs beside these, or a device plugin"
                " that shares them (HAMi, time slices)"
            )
    if gpu.vendor == "amd" and gpu.link.group and units > gpu.link.group:
        return f"it offers {units} {resource}, and a host has at most {gpu.link.group} {gpu.id}: they are partitions"
    missing = next((f"{count - units} of {count} are not allocatable" for _, count in counts if units < count), "")
    return Units(units, resource, note=missing)


def _count_registered(units: int, resource: str, node: ClusterNode) -> Units | str:
    """HAMi offers several slots of each GPU. A pod that requests a number of GPUs, and no memory, gets whole ones."""
    devices = count_registered(node.metadata.annotations[REGISTER])
    if not devices:
        return f"annotation {REGISTER} is not in a known form, and HAMi offers several units of each GPU"
    return Units(devices, resource, note=f"HAMi offers {units} units of them")


def _count_slices(units: int, slices: int, resource: str, labels: Mapping[str, str]) -> Units | str:
    if slices > MOST_SLICES:
        return f"{slices} pods share a GPU, and plans have at most {MOST_SLICES} time slices"
    if units % slices:
        return f"it offers {units} {resource}, which is no multiple of the {slices} pods that share a GPU"
    for key, count in _list_counts(None, labels):
        if units // slices > count:
            return f"it offers {units} {resource} for {slices} pods on each GPU, and label {key}={count}"
    return Units(units // slices, resource, slices=slices)


def _count_single(gpu: GpuKind, node: ClusterNode, profile: str, units: int, facts: Catalog) -> Units | str:
    """Count GPUs whose equal instances are offered as `nvidia.com/gpu`. Feature discovery counts instances, and not
    GPUs."""
    table = facts.mig(gpu)
    if strategy := _find_strategy(node.labels):
        return f"its MIG instances are shared ({strategy}), and plans have one or the other"
    if not table or profile not in table.profiles:
        return f"{gpu.id} has no MIG profile `{profile}` that plans can have"
    counted = [(key, count) for key, count in _list_counts(None, node.labels) if not key.startswith("nvidia.com/")]
    most = table.most(profile)
    gpus = counted[0][1] if counted else units // most
    if not gpus or units % gpus or units // gpus > most:
        found = f"; label {counted[0][0]}={counted[0][1]}" if counted else ""
        return f"it offers {units} MIG instances of {profile}, and a GPU has {most} of them{found}: not all are alike"
    each = units // gpus
    return Units(gpus, _WHOLE, layout={profile: each}, note=f"from {units} instances of {profile}, {each} on each")


def _count_instances(gpu: GpuKind, node: ClusterNode, offered: Mapping[str, int], facts: Catalog) -> Units | str:
    """Count GPUs whose instances have a resource for each profile (strategy `mixed`)."""
    table = facts.mig(gpu)
    for profile in offered:
        if not table or profile not in table.profiles:
            return f"{gpu.id} has no MIG profile `{profile}` that plans can have"
        replicas = node.labels.get(f"nvidia.com/mig-{profile}.replicas", "1")
        if f"nvidia.com/mig-{profile}.shared" in node.offered or replicas not in ("0", "1"):
            return f"its MIG instances are time-sliced (nvidia.com/mig-{profile})"
    counted = next((count for _, count in _list_counts(None, node.labels)), 0)
    gpus = counted or 1
    layout = {profile: count // gpus for profile, count in sorted(offered.items())}
    shown = _format({f"nvidia.com/mig-{profile}": count for profile, count in sorted(offered.items())})
    if any(count % gpus for count in offered.values()):
        return f"its MIG instances differ from GPU to GPU ({shown} on {gpus} GPUs); a pool has one layout"
    assert table
    if not table.fits(layout):
        missing = "" if counted else ", and no label has the number of its GPUs"
        return f"its MIG instances ({shown}) do not fit on {gpus} {gpu.id}{missing}"
    return Units(gpus, "", layout=layout)


def _count_intel(gpu: GpuKind, units: int, resource: str, labels: Mapping[str, str]) -> Units | str:
    counted = next((count for _, count in _list_counts(gpu, labels)), 0)
    if counted and units > counted:
        if units % counted:
            return f"it offers {units} {resource}, which is no multiple of its {counted} GPUs"
        return Units(counted, resource, slices=units // counted)
    return Units(units, resource)


def _find_strategy(labels: Mapping[str, str]) -> str:
    """Return the label by which several pods share a GPU; empty if they do not."""
    shared = (f"label {key}={text}" for key, text in _list_labels("sharing", labels) if text not in _UNSHARED)
    suffixed = labels.get(_PRODUCT, "").endswith("-SHARED")
    return next(shared, f"label {_PRODUCT}={labels[_PRODUCT]}" if suffixed else "")


def _find_slices(labels: Mapping[str, str]) -> int:
    return max((int(text) for _, text in _list_labels("slices", labels) if text.isdecimal()), default=0)


def _list_counts(gpu: GpuKind | None, labels: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Yield key and number of each label with the number of GPUs."""
    for table in load_node_labels().values():
        yield from table.list_counts(labels)
    if gpu and "present=" in gpu.identifying_label:
        key = gpu.identifying_label.partition(".present=")[0] + ".count"
        if labels.get(key, "").isdecimal() and int(labels[key]):
            yield key, int(labels[key])


def _list_labels(kind: Literal["sharing", "slices", "mig_profile", "partition"], labels: Mapping[str, str]) -> Labels:
    for table in load_node_labels().values():
        yield from ((key, labels[key]) for key in getattr(table, kind) if labels.get(key))


def _format(resources: Mapping[str, int]) -> str:
    return ", ".join(f"{key}: {count}" for key, count in sorted(resources.items()))
