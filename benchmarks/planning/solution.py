"""A placement as a solution of the integer program: which host holds what, as the planner allocates it."""

from collections import Counter
from collections.abc import Mapping

from planning.program import GpuGroup, Pattern, Program, count_parts, find_group, get_size
from rayhelm.planner.placement.allocate import allocate, count_possible_replicas
from rayhelm.planner.placement.candidates import Candidate

__all__ = ["express"]

Parts = dict[int, Counter[float]]
"""By id of a host, or host and GPU: how many parts of each size are there."""


def express(program: Program, chosen: Mapping[str, Candidate]) -> dict[str, int] | None:
    """Return the variables of a placement that are not 0. The planner's code allocates the models, the largest parts
    first; None if it finds no room for one of them."""
    for group in program.groups.values():
        for host in group.hosts:
            host.clear()
    values: Counter[str] = Counter()
    hosts: dict[int, Counter[float]] = {}
    gpus: dict[tuple[int, int], Counter[float]] = {}
    for model in sorted(chosen, key=lambda name: _sort_for_packing(chosen[name])):
        candidate = chosen[model]
        if count_possible_replicas(candidate) < candidate.replicas:
            return None
        values[_find_column(program, model, candidate)] = 1
        _allocate(candidate, program.groups[find_group(candidate)], hosts, gpus)
    for group in program.groups.values():
        for host in group.hosts:
            for index, owner in enumerate(host.owners):
                if parts := gpus.get((id(host), index)):
                    values[group.name_pattern(_find_pattern(group.shared_patterns[owner], parts), owner)] += 1
            if parts := hosts.get(id(host)):
                values[group.name_pattern(_find_pattern(group.patterns, parts))] += 1
    return dict(values)


def _sort_for_packing(candidate: Candidate) -> tuple[float, ...]:
    return -candidate.split.nodes, -candidate.split.gpus_per_node, -candidate.share


def _find_column(program: Program, model: str, candidate: Candidate) -> str:
    """Return the variable of a candidate, or of one that takes the same GPUs with the same faults."""
    kind = _describe(candidate)
    return next(name for name, each in program.columns[model].items() if _describe(each) == kind)


def _describe(candidate: Candidate) -> tuple[object, ...]:
    parts = count_parts(candidate), candidate.split.nodes > 1
    return (find_group(candidate), *parts, get_size(candidate), candidate.share, candidate.faults)


def _allocate(
    candidate: Candidate,
    group: GpuGroup,
    hosts: dict[int, Counter[float]],
    gpus: dict[tuple[int, int], Counter[float]],
) -> None:
    """Allocate the GPUs of a candidate, and count its parts on each host and GPU."""
    before = [(host.free[:], host.free_gpu_count) for host in group.hosts]
    allocate(candidate)
    size = get_size(candidate)
    for host, (free, free_gpu_count) in zip(group.hosts, before, strict=True):
        here = hosts.setdefault(id(host), Counter())
        taken = free_gpu_count - host.free_gpu_count
        if candidate.share == 1:
            here[size] += taken // int(size)
            continue
        here[1] += taken
        for index, left in enumerate(free):
            if count := round((left - host.free[index]) / size):
                gpus.setdefault((id(host), index), Counter())[size] += count


def _find_pattern(patterns: list[Pattern], parts: Counter[float]) -> Pattern:
    """Return a pattern that has all parts."""
    return next(pattern for pattern in patterns if Counter(pattern) >= parts)
