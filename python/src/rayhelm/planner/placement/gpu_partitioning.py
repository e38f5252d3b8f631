"""GPUs that several services share: MIG instances if `sharing` asks for isolation by hardware, else time slices."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rayhelm.errors import Fix, FleetError, Problem, each_problem
from rayhelm.facts import Catalog
from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.mig import MigTable
from rayhelm.facts.parts import make_time_slice
from rayhelm.fleet.pools import Pool, Sharing
from rayhelm.fleet.problems import problem_at

__all__ = ["GpuPartitioning", "partition_gpus", "rename_parts", "rename_resource"]


@dataclass(frozen=True)
class GpuPartitioning:
    """The parts of each GPU of a pool."""

    parts: tuple[tuple[GpuKind, int], ...]
    """A part, and how many of it a GPU has."""
    layout: Mapping[str, int]
    """MIG instances of a GPU by profile; empty for time slices."""
    slices: int
    """Time slices of a GPU; 0 with MIG."""
    because: str

    def __str__(self) -> str:
        if self.slices:
            return f"{self.slices} time slices per GPU"
        return "MIG " + " + ".join(f"{count} x {profile}" for profile, count in self.layout.items()) + " per GPU"


def rename_resource(gpu: GpuKind, pool: Pool) -> GpuKind:
    """Return the GPU, or the part of one, with the resource that the nodes of the pool offer it as."""
    return gpu.model_copy(update={"resource": pool.gpu_resource}) if pool.gpu_resource else gpu


def rename_parts(partitioning: GpuPartitioning | None, pool: Pool) -> GpuPartitioning | None:
    """Return the parts with the resource that the nodes of the pool offer them as."""
    if not partitioning:
        return None
    return replace(
        partitioning, parts=tuple((rename_resource(part, pool), count) for part, count in partitioning.parts)
    )


def partition_gpus(name: str, pool: Pool, gpu: GpuKind, facts: Catalog) -> GpuPartitioning | None:
    """Return the parts of a pool's GPUs; None if they stay whole. Raises FleetError for parts that a GPU does not
    have."""
    sharing = pool.sharing
    if not sharing or pool.hosts:
        return None
    path = ("pools", name, "sharing")
    with each_problem(
        lambda each: problem_at((*path, each.path), each.message, each.fix, alternatives=each.alternatives)
    ):
        if sharing.layout or sharing.isolation == "hardware":
            return _partition_by_mig(sharing, gpu, facts)
        return _partition_by_time(sharing, gpu)


def _partition_by_mig(sharing: Sharing, gpu: GpuKind, facts: Catalog) -> GpuPartitioning:
    table, shares = facts.mig(gpu), sharing.shares or 0
    if table is None:
        with_mig = ", ".join(other.id for other in facts.gpus() if other.mig)
        message = f"{gpu.id} has no MIG: the hardware cannot isolate its users. GPUs with MIG: {with_mig}"
        if sharing.layout:
            slices = Fix("..", {"shares": max(2, sum(sharing.layout.values()))}, "time slices, without isolation")
            raise FleetError(Problem(message, path="layout", fix=slices))
        raise FleetError(
            Problem(message, path="isolation", fix=Fix(value="none", why="time slices, without isolation"))
        )
    if sharing.layout:
        _check_layout(sharing.layout, table, gpu)
        return _build_instances(sharing.layout, gpu, facts, "`layout` is set in the fleet file")
    profile = table.parts(shares)
    if profile is None:
        most = max(table.most(profile) for profile in table.profiles)
        message = f"{shares} shares, and {gpu.id} has at most {most} MIG instances"
        raise FleetError(Problem(message, path="shares", fix=Fix(value=most)))
    because = f"`isolation: hardware` is set, and {profile} is the largest MIG profile of which {shares} fit"
    return _build_instances({profile: shares}, gpu, facts, because)


def _check_layout(layout: Mapping[str, int], table: MigTable, gpu: GpuKind) -> None:
    """Raise FleetError for profiles that the GPU lacks, and for more instances than fit."""
    if unknown := [profile for profile in layout if profile not in table.profiles]:
        known = ", ".join(f"{profile} ({table.most(profile)})" for profile in table.profiles)
        message = f"{gpu.id} has no MIG profile `{unknown[0]}`"
        layout_fix = Fix(value={next(iter(table.profiles)): 1}, why=f"profiles, and the most of each: {known}")
        raise FleetError(Problem(message, path="layout", fix=layout_fix))
    if not table.fits(layout):
        layout = _sort_largest_first(layout, table)
        wanted = " + ".join(f"{count} x {profile}" for profile, count in layout.items())
        taken = sum(table.profiles[profile].memory * count for profile, count in layout.items())
        message = f"{wanted} do not fit on {gpu.id}: they need {taken} of its {table.memory_slices} memory slices"
        if taken <= table.memory_slices:
            message += ", and an instance can start at some of the slices only"
        fix = Fix(value=_find_largest_that_fits(layout, table), why="the largest instances that fit")
        raise FleetError(Problem(message, path="layout", fix=fix))


def _sort_largest_first(layout: Mapping[str, int], table: MigTable) -> dict[str, int]:
    def size(profile: str) -> tuple[int, int, str]:
        return -table.profiles[profile].memory, -table.profiles[profile].compute, profile

    return {profile: layout[profile] for profile in sorted(layout, key=size)}


def _find_largest_that_fits(layout: Mapping[str, int], table: MigTable) -> dict[str, int]:
    """Return as many of the wanted instances as fit, in the given order."""
    kept: dict[str, int] = {}
    for profile, count in layout.items():
        for _ in range(count):
            more = {**kept, profile: kept.get(profile, 0) + 1}
            kept = more if table.fits(more) else kept
    return kept


def _build_instances(layout: Mapping[str, int], gpu: GpuKind, facts: Catalog, because: str) -> GpuPartitioning:
    """Return the instances of a layout. The price of a GPU is divided by memory, so that all together cost as much as
    the GPU."""
    parts = [(facts.gpu(f"{gpu.id}/{profile}"), count) for profile, count in layout.items()]
    whole = sum(part.part * count for part, count in parts)
    priced = tuple((part.model_copy(update={"part": part.part / whole}), count) for part, count in parts)
    return GpuPartitioning(priced, dict(layout), 0, because)


def _partition_by_time(sharing: Sharing, gpu: GpuKind) -> GpuPartitioning:
    slices = sharing.shares or 0
    with each_problem(lambda problem: replace(problem, path="shares")):
        part = make_time_slice(gpu, slices)
    because = (
        f"no `isolation: hardware`: {slices} pods use a GPU in turn, and the plan assumes that all are busy. Only"
        " `gpu_memory_utilization` limits the memory of each engine. Engines of one GPU that start at the same time"
        " can miscount the free memory: one then fails and restarts"
    )
    return GpuPartitioning(((part, slices),), {}, slices, because)
