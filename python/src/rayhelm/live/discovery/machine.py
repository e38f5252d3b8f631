"""A node with GPUs, read from its labels, taints and allocatable resources."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from rayhelm.errors import Fix
from rayhelm.facts import Catalog
from rayhelm.facts.gpu import GpuKind, Vendor
from rayhelm.live.discovery.gpu_name import find_gpu, has_gpu_label
from rayhelm.live.discovery.node import ClusterNode
from rayhelm.live.discovery.resource_slices import Devices
from rayhelm.live.discovery.resources import find_vendors, list_gpu_resources
from rayhelm.live.discovery.units import Units, count_units, explain_division, find_single_profile

__all__ = ["Machine", "Taint", "Unusable", "group_by_reason", "read_machine"]

_GIB = 2**30
_MOST_NAMES = 3
_SPOT = {
    "karpenter": ("karpenter.sh/capacity-type", "spot"),
    "eks": ("eks.amazonaws.com/capacityType", "SPOT"),
    "gke": ("cloud.google.com/gke-spot", "true"),
    "aks": ("kubernetes.azure.com/scalesetpriority", "spot"),
}
"""Label of spot nodes by provider."""


@dataclass(frozen=True)
class Taint:
    """A taint that pods of the pool have to tolerate."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True)
class Machine:
    """A node whose GPUs a fleet can use."""

    name: str
    gpu: GpuKind
    gpus: int
    cpus: int
    """Allocatable cores, rounded down; 0 if the node does not report them."""
    memory_gib: int
    """Allocatable memory, rounded down; 0 if the node does not report it."""
    resource: str = ""
    """Extended resource that pods request, where it is not that of the plan for these GPUs or parts."""
    requests: frozenset[str] = frozenset()
    """Resources that pods of its pool request."""
    slices: int = 0
    """Time slices of each GPU; 0 for whole GPUs."""
    layout: tuple[tuple[str, int], ...] = ()
    """MIG instances of each GPU, by profile."""
    spot: str | None = None
    """Provider, if it can remove the node at any time."""
    rdma_resource: str | None = None
    zone: str = ""
    taints: tuple[Taint, ...] = ()
    note: str = field(default="", compare=False)
    """What was concluded about the number of GPUs; empty if the node states it."""
    labels: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)


@dataclass(frozen=True)
class Unusable:
    """A node that no pool can have, with the reason."""

    name: str
    reason: str
    """Follows the name of the node."""
    fix: Fix
    resources: frozenset[str] = frozenset()
    """Resources on which pods of a pool could start."""
    labels: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    is_permanent: bool = True
    """False if the node belongs to a pool once it is healthy."""


def group_by_reason(unusable: Iterable[Unusable]) -> list[tuple[str, Unusable]]:
    """Return, for each reason, the nodes (`node a`, `nodes a, b, c and 4997 more`) and one of them."""
    groups: dict[str, list[Unusable]] = {}
    for node in unusable:
        groups.setdefault(node.reason, []).append(node)
    return [(_name_nodes([node.name for node in nodes]), nodes[0]) for nodes in groups.values()]


def _name_nodes(names: list[str]) -> str:
    if len(names) == 1:
        return f"node {names[0]}"
    rest = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"nodes {', '.join(names[:_MOST_NAMES])}{rest}"


def read_machine(item: Mapping[str, Any], facts: Catalog, devices: Devices | None = None) -> Machine | Unusable | None:
    """Return the machine of a node; None if it offers no GPU. `devices`: its GPUs in ResourceSlices."""
    try:
        node = ClusterNode.model_validate(item)
    except ValidationError as error:
        return _explain_odd_node(item, error)
    resources = list_gpu_resources(node.offered, facts)
    labels = node.labels
    is_in_slices = not resources and devices is not None
    if devices and is_in_slices:
        read = _read_devices(node, devices)
        if isinstance(read, str):
            return _leave_out(node, {}, read, Fix(command="kubectl get deviceclasses,resourceslices -o yaml"))
        resources, labels = read
    if not resources:
        return _explain_missing(node, facts)
    if reason := node.hindrance:
        fix = Fix(command=f"kubectl describe node {node.name}")
        return Unusable(node.name, reason, fix, frozenset(resources), labels, is_permanent=False)
    vendors = {devices.vendor} if is_in_slices and devices else find_vendors(resources, facts)
    if len(vendors) > 1:
        fix = Fix(command=f"kubectl describe node {node.name}", why="lists them under Allocatable")
        return _leave_out(node, resources, f"it offers GPUs of several vendors: {', '.join(sorted(resources))}", fix)
    vendor = vendors.pop()
    gpu = explain_division(labels, resources) or _find_gpu(labels, resources, vendor, facts)
    if isinstance(gpu, str):
        return _leave_out(node, resources, gpu, _name_fix(vendor))
    units = _explain_size(node) or count_units(gpu, node, resources, facts)
    if isinstance(units, str):
        fix = Fix(command=f"kubectl describe node {node.name}", why="lists its labels, and GPUs under Allocatable")
        return _leave_out(node, resources, units, fix)
    return _build_machine(node, gpu, units, facts, devices)


def _build_machine(node: ClusterNode, gpu: GpuKind, units: Units, facts: Catalog, devices: Devices | None) -> Machine:
    labels, offered = node.labels, node.offered
    spot = next((provider for provider, (key, value) in _SPOT.items() if labels.get(key) == value), None)
    usual = _find_usual_resource(gpu, units, facts)
    in_slices = _explain_slices(devices) if devices and units.resource not in offered else ""
    return Machine(
        name=node.name,
        gpu=gpu,
        gpus=units.gpus,
        cpus=int(offered.get("cpu", 0)),
        memory_gib=int(offered.get("memory", 0) / _GIB),
        resource="" if units.resource in ("", usual) else units.resource,
        requests=frozenset({units.resource} if units.resource else {f"nvidia.com/mig-{name}" for name in units.layout}),
        slices=units.slices,
        layout=tuple(units.layout.items()),
        spot=spot,
        rdma_resource=next((key for key in sorted(offered) if key.startswith("rdma/") and offered[key]), None),
        zone=labels.get("topology.kubernetes.io/zone", ""),
        taints=tuple(_list_taints(node, gpu, units, spot)),
        note=units.note or in_slices,
        labels=labels,
    )


def _explain_size(node: ClusterNode) -> str:
    """Return why no pod fits on the node; empty if one does."""
    small = [key for key, least in (("cpu", 1), ("memory", _GIB)) if node.offered.get(key, least) < least]
    return f"its allocatable {' and '.join(small)} are less than 1 core and 1 GiB" if small else ""


def _find_usual_resource(gpu: GpuKind, units: Units, facts: Catalog) -> str:
    """Return the resource that pods of a plan request for such parts."""
    if units.slices:
        return facts.gpu(f"{gpu.id}/{units.slices}").resource
    return "" if units.layout else gpu.resource


def _find_gpu(labels: Mapping[str, str], resources: Mapping[str, int], vendor: Vendor, facts: Catalog) -> GpuKind | str:
    return find_gpu(labels, resources.keys(), vendor, facts, is_divided=bool(find_single_profile(labels)))


def _read_devices(node: ClusterNode, devices: Devices) -> tuple[dict[str, int], dict[str, str]] | str:
    """Return resources and labels of GPUs in ResourceSlices, or why pods cannot request them."""
    count = len(devices.products)
    if not count:
        return f"its ResourceSlices of {devices.driver} have {devices.parts} parts of GPUs, and no whole one"
    if not devices.resource:
        return (
            f"its {count} GPUs are in ResourceSlices of {devices.driver} only, and DeviceClass {devices.driver} has no"
            " `extendedResourceName` for pods to request"
        )
    return {devices.resource: count}, {**node.labels, **devices.labels}


def _explain_slices(devices: Devices) -> str:
    return (
        f"in ResourceSlices of {devices.driver}; pods get them as {devices.resource} with feature gate"
        " DRAExtendedResource, the default from Kubernetes 1.36 on"
    )


def _leave_out(node: ClusterNode, resources: Mapping[str, int], reason: str, fix: Fix) -> Unusable:
    return Unusable(node.name, reason, fix, frozenset(resources), node.labels)


def _explain_missing(node: ClusterNode, facts: Catalog) -> Unusable | None:
    """Return why a node with GPUs offers none; None if nothing on it says that it has any."""
    had = list_gpu_resources(node.capacity, facts)
    label = has_gpu_label(node.labels)
    if not had and not label:
        return None
    seen = [
        *(f"{key}: {count} in its capacity" for key, count in sorted(had.items())),
        *([f"label {label}"] if label else []),
    ]
    return _leave_out(
        node,
        {},
        f"it offers no GPU ({'; '.join(seen)}): the device plugin does not run on it, or its GPUs are unhealthy",
        Fix(command=f"kubectl get pods -A --field-selector spec.nodeName={node.name}"),
    )


def _explain_odd_node(item: Mapping[str, Any], error: ValidationError) -> Unusable:
    metadata = item.get("metadata")
    found = metadata.get("name") if isinstance(metadata, dict) else None
    name = found if isinstance(found, str) else ""
    first = error.errors()[0]
    fix = Fix(command=f"kubectl get node {name} -o yaml" if name else "kubectl get nodes -o yaml")
    return Unusable(
        name or "without a name", f"`{'.'.join(map(str, first['loc']))}` cannot be read: {first['msg']}", fix
    )


def _name_fix(vendor: Vendor) -> Fix:
    feature = {
        "nvidia": "GPU feature discovery, part of the GPU operator, labels nodes",
        "amd": "the node labeller of AMD's GPU operator labels nodes",
        "intel": "node feature discovery with Intel's rules labels nodes",
    }.get(vendor, "write the pool by hand")
    return Fix(command="rayhelm catalog gpus", why=f"the names that a pool can have in `gpu`; {feature}")


def _list_taints(node: ClusterNode, gpu: GpuKind, units: Units, spot: str | None) -> list[Taint]:
    """Return the taints that the charts do not tolerate by themselves. They tolerate those of the GPU vendor and of
    spot nodes; those of the node's health go away."""
    own = {gpu.resource, units.resource, _SPOT[spot][0] if spot else ""}
    return [
        Taint(taint.key, taint.value or "", taint.effect)
        for taint in node.spec.taints
        if taint.key not in own
        and not taint.key.startswith("node.kubernetes.io/")
        and taint.effect in ("NoSchedule", "NoExecute")
    ]
