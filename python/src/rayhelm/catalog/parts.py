"""Parts of a card as cards of their own: `H100-SXM-80GB/3g.40gb` by MIG, `L4-24GB/2` for one of two time slices."""

from rayhelm.catalog.gpu import GpuKind, GpuLink
from rayhelm.catalog.mig import MigTable
from rayhelm.errors import FleetError, Problem

__all__ = ["MOST_SLICES", "find_slice_resource", "make_mig_instance", "make_time_slice"]

MOST_SLICES = 48
"""Of one card in time: more processes than this no CUDA driver lets share it by MPS, and none should without."""
UNSHOWN = 0.9
"""Of its share of the card's memory, an instance has at least so much: those that were shown lack 8.4 % at most."""
_ALONE = GpuLink(kind="none: parts of cards do not reach each other")
_SLICED = {"nvidia": "nvidia.com/gpu.shared"}
"""What device plugins call a time slice. Intel's keeps the card's name."""


def make_mig_instance(card: GpuKind, table: MigTable, profile: str) -> GpuKind:
    """What an engine has in a MIG instance. Raises FleetError for a profile that the card lacks."""
    if profile not in table.profiles:
        known = ", ".join(table.profiles)
        raise FleetError(Problem(f"{card.id} has no MIG profile `{profile}`", fix=f"it has: {known}"))
    found = table.profiles[profile]
    memory, compute = found.memory / table.memory_slices, found.compute / table.compute_slices
    whole = card.usable_gib or card.memory_gb
    return _part(card, profile, memory=memory, compute=compute).model_copy(
        update={
            "resource": f"nvidia.com/mig-{profile}",
            "usable_gib": found.gib or (whole * memory * UNSHOWN if whole else None),
            "usable_source": table.source if found.gib else "its share of the card, less a tenth: nobody has shown it",
            "part": memory,
        }
    )


def make_time_slice(card: GpuKind, slices: int) -> GpuKind:
    """What is left for an engine where so many have the card in turn, all of them busy. Raises FleetError."""
    if not 2 <= slices <= MOST_SLICES:
        raise FleetError(Problem(f"{slices} time slices of {card.id}", fix=f"between 2 and {MOST_SLICES}"))
    share = 1 / slices
    return _part(card, str(slices), memory=share, compute=share).model_copy(
        update={
            "resource": find_slice_resource(card),
            "usable_gib": None if card.usable_gib is None else card.usable_gib * share,
            "part": share,
            "memory_seen": share,
        }
    )


def find_slice_resource(card: GpuKind) -> str:
    """Extended resource of a card's time slices. Raises FleetError for vendors whose plugin makes none."""
    if card.vendor not in ("nvidia", "intel"):
        message = f"the device plugin of {card.vendor} does not hand one {card.id} to several pods"
        raise FleetError(Problem(message, fix="one service with several models shares a card by `gpuFraction`"))
    return _SLICED.get(card.vendor, card.resource)


def _part(card: GpuKind, name: str, *, memory: float, compute: float) -> GpuKind:
    """Figures of its speed, by its share of the card."""
    return card.model_copy(
        update={
            "id": f"{card.id}/{name}",
            "of": card.id,
            "aliases": (),
            "link": _ALONE,
            "memory_gb": _share(card.memory_gb, memory),
            "memory_bandwidth_gb_per_s": _share(card.memory_bandwidth_gb_per_s, memory),
            "bf16_tflops": _share(card.bf16_tflops, compute),
            "fp8_tflops": _share(card.fp8_tflops, compute),
            "fp4_tflops": _share(card.fp4_tflops, compute),
        }
    )


def _share(figure: float | None, share: float) -> float | None:
    return None if figure is None else figure * share
