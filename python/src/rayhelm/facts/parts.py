"""Parts of a GPU as GPU kinds: `H100-SXM-80GB/3g.40gb` for a MIG instance, `L4-24GB/2` for one of two time slices."""

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.facts.gpu import GpuKind, GpuLink
from rayhelm.facts.mig import MigTable

__all__ = ["MOST_SLICES", "find_slice_resource", "make_mig_instance", "make_time_slice"]

MOST_SLICES = 48
"""Time slices of one GPU. CUDA MPS supports at most 48 processes, and the same limit is used without MPS."""
UNSHOWN = 0.9
"""Factor on the share of the GPU memory, for instances without a published value. Published instances have up to 8.4 %
less than their share."""
_ALONE = GpuLink(kind="none: parts of GPUs have no link to each other")
_SLICED = {"nvidia": "nvidia.com/gpu.shared"}
"""Extended resource of a time slice by vendor. Intel's plugin keeps the resource of the whole GPU."""


def make_mig_instance(gpu: GpuKind, table: MigTable, profile: str) -> GpuKind:
    """Return the GPU kind of a MIG instance. Raises FleetError for a profile that the GPU lacks."""
    if profile not in table.profiles:
        first, *others = (Fix(value=f"{gpu.id}/{known}") for known in table.profiles)
        raise FleetError(Problem(f"{gpu.id} has no MIG profile `{profile}`", fix=first, alternatives=tuple(others)))
    found = table.profiles[profile]
    memory, compute = found.memory / table.memory_slices, found.compute / table.compute_slices
    whole = gpu.usable_gib or gpu.memory_gb
    return _make_part(gpu, profile, memory=memory, compute=compute).model_copy(
        update={
            "resource": f"nvidia.com/mig-{profile}",
            "usable_gib": found.gib or (whole * memory * UNSHOWN if whole else None),
            "usable_source": table.source if found.gib else "share of the GPU memory minus 10 %: no published value",
            "part": memory,
        }
    )


def make_time_slice(gpu: GpuKind, slices: int) -> GpuKind:
    """Return the GPU kind of one time slice, with all slices busy. Raises FleetError for a wrong number or vendor."""
    if not 2 <= slices <= MOST_SLICES:
        raise FleetError(
            Problem(
                f"{slices} time slices of {gpu.id}, not between 2 and {MOST_SLICES}",
                fix=Fix(value=min(max(slices, 2), MOST_SLICES)),
            )
        )
    share = 1 / slices
    return _make_part(gpu, str(slices), memory=share, compute=share).model_copy(
        update={
            "resource": find_slice_resource(gpu),
            "usable_gib": None if gpu.usable_gib is None else gpu.usable_gib * share,
            "part": share,
            "memory_seen": share,
        }
    )


def find_slice_resource(gpu: GpuKind) -> str:
    """Return the extended resource of a GPU's time slices. Raises FleetError for vendors whose device plugin has
    none."""
    if gpu.vendor not in ("nvidia", "intel"):
        message = f"the device plugin of {gpu.vendor} cannot share one {gpu.id} between pods"
        fix = Fix.removal("..", "models of one service can share a GPU with `gpuFraction: 0.5`")
        raise FleetError(Problem(message, fix=fix))
    return _SLICED.get(gpu.vendor, gpu.resource)


def _make_part(gpu: GpuKind, name: str, *, memory: float, compute: float) -> GpuKind:
    """Return the GPU kind of a part, with memory and speed in proportion to its share of the GPU."""
    return gpu.model_copy(
        update={
            "id": f"{gpu.id}/{name}",
            "of": gpu.id,
            "aliases": (),
            "link": _ALONE,
            "memory_gb": _share(gpu.memory_gb, memory),
            "memory_bandwidth_gb_per_s": _share(gpu.memory_bandwidth_gb_per_s, memory),
            "bf16_tflops": _share(gpu.bf16_tflops, compute),
            "fp8_tflops": _share(gpu.fp8_tflops, compute),
            "fp4_tflops": _share(gpu.fp4_tflops, compute),
        }
    )


def _share(figure: float | None, share: float) -> float | None:
    return None if figure is None else figure * share
