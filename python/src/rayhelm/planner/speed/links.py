"""Rates between the GPUs of a host."""

from rayhelm.facts.gpu import GpuKind
from rayhelm.planner.speed.assumptions import load_assumptions
from rayhelm.planner.speed.replica import StageLink

__all__ = ["find_all_reduce_gb_per_s", "find_host_link", "has_fast_link"]

_PCIE_GB_PER_S = 16.0
"""PCIe 3.0 with 16 lanes, for GPUs whose rate is unknown."""
_PCIE_5_GB_PER_S = 64.0
"""PCIe 5.0 with 16 lanes."""


def has_fast_link(gpu: GpuKind, count: int) -> bool:
    """Return whether NVLink or an equal joins so many GPUs of one host."""
    return bool(gpu.link.fast and gpu.link.gb_per_s) and count <= (gpu.link.group or count)


def find_all_reduce_gb_per_s(gpu: GpuKind, count: int) -> float:
    """Return the rate of an all-reduce of `count` GPUs of one host, one direction, GB/s."""
    if has_fast_link(gpu, count) and gpu.link.gb_per_s:
        return gpu.link.gb_per_s
    shares = _find_pcie_shares(gpu)
    share = next((shares[size] for size in sorted(shares) if count <= size), min(shares.values()))
    return (gpu.pcie_gb_per_s or _PCIE_GB_PER_S) * share


def _find_pcie_shares(gpu: GpuKind) -> dict[int, float]:
    """Return the part of the PCIe rate that an all-reduce reaches, by number of GPUs."""
    assumed = load_assumptions()
    if measured := assumed.measured_all_reduce_share.get(gpu.of or gpu.id):
        return measured
    is_fifth = gpu.vendor == "nvidia" and (gpu.pcie_gb_per_s or 0.0) >= _PCIE_5_GB_PER_S
    return assumed.pcie5_all_reduce_share if is_fifth else assumed.pcie_all_reduce_share


def find_host_link(gpu: GpuKind) -> StageLink:
    """Return the link between two pipeline stages on one host."""
    rate = gpu.link.gb_per_s if has_fast_link(gpu, 2) else None
    return StageLink(rate or gpu.pcie_gb_per_s or _PCIE_GB_PER_S, load_assumptions().hop_s)
