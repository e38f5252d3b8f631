"""A node with GPUs, read from its labels, taints and allocatable resources."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rayhelm.catalog import Catalog
from rayhelm.catalog.gpu import GpuKind
from rayhelm.errors import Fix, FleetError

__all__ = ["Machine", "Taint", "Unusable", "read_machine"]

_GIB = 2**30
_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "m": 1e-3}
_SPOT = {
    "karpenter": ("karpenter.sh/capacity-type", "spot"),
    "eks": ("eks.amazonaws.com/capacityType", "SPOT"),
    "gke": ("cloud.google.com/gke-spot", "true"),
    "aks": ("kubernetes.azure.com/scalesetpriority", "spot"),
}
"""Label of spot nodes by provider."""
_PRODUCT_LABELS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
)
"""Labels with the name of the GPU, the most exact first."""
_MIG = re.compile(r"nvidia\.com/mig-(?P<profile>[0-9]+g\.[0-9]+gb(\.me)?)$")


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
    """Allocatable cores, rounded down."""
    memory_gib: int
    """Allocatable memory, rounded down."""
    slices: int = 0
    """Time slices of each GPU; 0 for whole GPUs."""
    layout: tuple[tuple[str, int], ...] = ()
    """MIG instances of each GPU, by profile."""
    spot: str | None = None
    """Provider, if it can remove the node at any time."""
    rdma_resource: str | None = None
    zone: str = ""
    taints: tuple[Taint, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)


@dataclass(frozen=True)
class Unusable:
    """A node that no pool can have, with the reason."""

    name: str
    reason: str
    fix: Fix


def read_machine(node: Mapping[str, Any], known: Catalog) -> Machine | Unusable | None:
    """Return the machine of a Node; None if it offers no GPU."""
    name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
    offered = {key: _read_quantity(value) for key, value in (node["status"].get("allocatable") or {}).items()}
    resources = _list_gpu_resources(offered, known)
    if not resources:
        return None
    if reason := _find_hindrance(node):
        return Unusable(name, reason, Fix(command=f"kubectl describe node {name}"))
    gpu = _find_gpu(labels, resources, known)
    if isinstance(gpu, str):
        return Unusable(name, gpu, _name_fix(resources))
    gpus, slices, layout = _count(gpu, labels, offered, resources)
    if not gpus:
        return Unusable(
            name,
            f"its MIG instances differ from GPU to GPU ({', '.join(sorted(resources))}); a pool has one layout",
            Fix(command=f"kubectl label node {name} nvidia.com/mig.config=LAYOUT --overwrite"),
        )
    spot = next((provider for provider, (key, value) in _SPOT.items() if labels.get(key) == value), None)
    return Machine(
        name=name,
        gpu=gpu,
        gpus=gpus,
        cpus=int(offered.get("cpu", 0)),
        memory_gib=int(offered.get("memory", 0) / _GIB),
        slices=slices,
        layout=layout,
        spot=spot,
        rdma_resource=next((key for key in sorted(offered) if key.startswith("rdma/") and offered[key]), None),
        zone=labels.get("topology.kubernetes.io/zone", ""),
        taints=tuple(_list_taints(node, gpu, spot)),
        labels=labels,
    )


def _list_gpu_resources(offered: Mapping[str, float], known: Catalog) -> set[str]:
    """Return the resources of GPUs and of parts of GPUs of which the node offers at least one."""
    whole = {gpu.resource for gpu in known.gpus()}
    shared = {f"{resource}.shared" for resource in whole}
    return {key for key, count in offered.items() if count and (key in whole | shared or _MIG.match(key))}


def _find_hindrance(node: Mapping[str, Any]) -> str:
    """Return why pods do not start on the node now; empty if they do."""
    conditions = node["status"].get("conditions") or []
    ready = next((item for item in conditions if item["type"] == "Ready"), None)
    if ready and ready["status"] != "True":
        return f"it is not Ready ({ready.get('reason', 'no reason given')})"
    if (node.get("spec") or {}).get("unschedulable"):
        return "it is cordoned"
    return ""


def _find_gpu(labels: Mapping[str, str], resources: set[str], known: Catalog) -> GpuKind | str:
    """Return the kind of the GPUs, or why it is not known."""
    for gpu in known.gpus():
        key, _, value = gpu.identifying_label.partition("=")
        if gpu.product_label and _strip_suffix(labels.get("nvidia.com/gpu.product", "")) == gpu.product_label:
            return gpu
        if key and labels.get(key) == value:
            return gpu
    named = {key: labels[key] for key in _PRODUCT_LABELS if labels.get(key)}
    for text in named.values():
        for spelling in (text, text.removeprefix("nvidia-").removeprefix("tesla-")):
            try:
                return known.gpu(spelling)
            except FleetError:
                continue
    if named:
        key, text = next(iter(named.items()))
        return f"the catalog has no GPU `{text}` (label {key})"
    candidates = [gpu for gpu in known.gpus() if gpu.resource in resources]
    if len(candidates) == 1:
        return candidates[0]
    return f"it offers {', '.join(sorted(resources))} and has no label with the name of its GPU"


def _strip_suffix(product: str) -> str:
    """Remove what GPU feature discovery appends for shared and partitioned GPUs."""
    return re.sub(r"-(SHARED|MIG-.*)$", "", product)


def _name_fix(resources: set[str]) -> Fix:
    vendor = next((part for part in ("nvidia", "amd", "intel") if any(part in item for item in resources)), "")
    feature = {
        "nvidia": "GPU feature discovery, part of the GPU operator, labels nodes",
        "amd": "the node labeller of AMD's GPU operator labels nodes",
        "intel": "node feature discovery with Intel's rules labels nodes",
    }.get(vendor, "write the pool by hand")
    return Fix(command="rayhelm catalog gpus", why=f"the names that a pool can have in `gpu`; {feature}")


def _count(
    gpu: GpuKind, labels: Mapping[str, str], offered: Mapping[str, float], resources: set[str]
) -> tuple[int, int, tuple[tuple[str, int], ...]]:
    """Return GPUs, time slices of each, and MIG instances of each. No GPUs if they are not divided alike."""
    profiles = {match["profile"]: int(offered[key]) for key in resources if (match := _MIG.match(key))}
    labeled = _read_count(labels, "nvidia.com/gpu.count") or _read_intel_count(gpu, labels)
    if profiles:
        gpus = labeled or 1
        if any(count % gpus for count in profiles.values()):
            return 0, 0, ()
        return gpus, 0, tuple(sorted((profile, count // gpus) for profile, count in profiles.items()))
    units = max(int(offered[key]) for key in resources)
    slices = _read_count(labels, "nvidia.com/gpu.replicas")
    if labels.get("nvidia.com/gpu.sharing-strategy", "none") != "none" and slices > 1:
        return max(1, units // slices), slices, ()
    if gpu.vendor == "intel" and labeled and units > labeled and units % labeled == 0:
        return labeled, units // labeled, ()
    return units, 0, ()


def _read_intel_count(gpu: GpuKind, labels: Mapping[str, str]) -> int:
    mark, present, _ = gpu.identifying_label.partition(".present=")
    return _read_count(labels, f"{mark}.count") if present else 0


def _read_count(labels: Mapping[str, str], key: str) -> int:
    text = labels.get(key, "")
    return int(text) if text.isdecimal() else 0


def _list_taints(node: Mapping[str, Any], gpu: GpuKind, spot: str | None) -> list[Taint]:
    """Return the taints that the charts do not tolerate by themselves. They tolerate those of the GPU vendor and of
    spot nodes; those of the node's health go away."""
    own = {gpu.resource, _SPOT[spot][0] if spot else ""}
    return [
        Taint(taint["key"], taint.get("value") or "", taint["effect"])
        for taint in (node.get("spec") or {}).get("taints") or []
        if taint["key"] not in own
        and not taint["key"].startswith("node.kubernetes.io/")
        and taint["effect"] in ("NoSchedule", "NoExecute")
    ]


def _read_quantity(text: str | int) -> float:
    """Read a Kubernetes quantity: `8`, `7910m`, `263842228Ki`. What is none counts as 0."""
    match = re.fullmatch(r"([0-9.]+(?:[eE][0-9]+)?)([A-Za-z]*)", str(text))
    return float(match[1]) * _UNITS.get(match[2], 1) if match else 0.0
