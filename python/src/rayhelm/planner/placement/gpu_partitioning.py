"""Parts of cards that services and tenants have side by side: by MIG where isolation is asked, else by time slices."""

from collections.abc import Mapping
from dataclasses import dataclass

from rayhelm.catalog import Catalog
from rayhelm.catalog.gpu import GpuKind
from rayhelm.catalog.mig import MigTable
from rayhelm.catalog.parts import make_time_slice
from rayhelm.errors import FleetError, Problem
from rayhelm.spec.load import LoadedFleet
from rayhelm.spec.pools import Pool, Sharing

__all__ = ["GpuPartitioning", "partition_gpus"]


@dataclass(frozen=True)
class GpuPartitioning:
    """What each card of a pool is cut into."""

    parts: tuple[tuple[GpuKind, int], ...]
    """A part, and how many of it a card has."""
    layout: Mapping[str, int]
    """MIG instances of a card by profile; empty for time slices."""
    slices: int
    """Time slices of a card; 0 with MIG."""
    because: str

    def __str__(self) -> str:
        if self.slices:
            return f"{self.slices} time slices a card"
        return "MIG " + " + ".join(f"{count} x {profile}" for profile, count in self.layout.items()) + " a card"


def partition_gpus(name: str, pool: Pool, gpu: GpuKind, loaded: LoadedFleet, known: Catalog) -> GpuPartitioning | None:
    """None where cards stay whole. Raises FleetError for parts that the card does not have."""
    sharing = pool.sharing
    if not sharing or pool.hosts:
        return None
    path = ("pools", name, "sharing")
    try:
        if sharing.layout or sharing.isolation == "hardware":
            return _by_mig(sharing, gpu, known)
        return _in_time(sharing, gpu)
    except FleetError as error:
        raise FleetError(
            [loaded.document.problem((*path, told.path), told.message, told.fix) for told in error.problems]
        ) from None


def _by_mig(sharing: Sharing, gpu: GpuKind, known: Catalog) -> GpuPartitioning:
    table, shares = known.mig(gpu), sharing.shares or 0
    if table is None:
        message = f"{gpu.id} has no MIG, so nothing in the hardware keeps its users apart"
        with_mig = ", ".join(gpu.id for gpu in known.gpus() if gpu.mig)
        fix = f"isolation: none   # time slices, for services that trust each other\n# or another `gpu`: {with_mig}"
        raise FleetError(Problem(message, path="layout" if sharing.layout else "isolation", fix=fix))
    if sharing.layout:
        _has_room(sharing.layout, table, gpu)
        return _instances(sharing.layout, gpu, known, "`layout` is pinned in the fleet file")
    profile = table.parts(shares)
    if profile is None:
        most = max(table.most(profile) for profile in table.profiles)
        message = f"{gpu.id} has at most {most} MIG instances, and {shares} are asked for"
        raise FleetError(Problem(message, path="shares", fix=f"shares: {most}"))
    because = f"isolation by hardware is asked, and {profile} is the largest profile of which {shares} fit"
    return _instances({profile: shares}, gpu, known, because)


def _has_room(layout: Mapping[str, int], table: MigTable, gpu: GpuKind) -> None:
    """Raises FleetError for profiles that the card lacks, and for more than it has room for."""
    if unknown := [profile for profile in layout if profile not in table.profiles]:
        known = ", ".join(f"{profile} ({table.most(profile)})" for profile in table.profiles)
        message = f"{gpu.id} has no MIG profile `{unknown[0]}`"
        raise FleetError(Problem(message, path="layout", fix=f"it has, and at most so many: {known}"))
    if not table.fits(layout):
        told = " + ".join(f"{count} x {profile}" for profile, count in layout.items())
        taken = sum(table.profiles[profile].memory * count for profile, count in layout.items())
        message = f"{told} have no room on {gpu.id}: they take {taken} of its {table.memory_slices} memory slices"
        if taken <= table.memory_slices:
            message += ", and a profile may begin at some of them only"
        raise FleetError(Problem(message, path="layout", fix=_largest_that_fits(layout, table)))


def _largest_that_fits(layout: Mapping[str, int], table: MigTable) -> str:
    kept: dict[str, int] = {}
    for profile, count in layout.items():
        for _ in range(count):
            more = {**kept, profile: kept.get(profile, 0) + 1}
            kept = more if table.fits(more) else kept
    return "layout: {" + ", ".join(f"{profile}: {count}" for profile, count in kept.items()) + "}"


def _instances(layout: Mapping[str, int], gpu: GpuKind, known: Catalog, because: str) -> GpuPartitioning:
    """Each part bears its share of the card's price by its memory, so that all together bear the whole."""
    parts = [(known.gpu(f"{gpu.id}/{profile}"), count) for profile, count in layout.items()]
    whole = sum(part.part * count for part, count in parts)
    priced = tuple((part.model_copy(update={"part": part.part / whole}), count) for part, count in parts)
    return GpuPartitioning(priced, dict(layout), 0, because)


def _in_time(sharing: Sharing, gpu: GpuKind) -> GpuPartitioning:
    slices = sharing.shares or 0
    try:
        part = make_time_slice(gpu, slices)
    except FleetError as error:
        (told,) = error.problems
        raise FleetError(Problem(told.message, path="shares", fix=told.fix)) from None
    because = (
        "isolation is not asked: the card's users have it in turn, and each engine is told to take no more than its"
        f" share of the memory, since nothing else bounds it; planned as if all {slices} were busy. Engines of one card"
        " that start at once can take each other's memory for their own: one of them then fails, and is started again"
    )
    return GpuPartitioning(((part, slices),), {}, slices, because)
