"""Allocate GPUs of a pool to replicas."""

from collections.abc import Sequence
from itertools import islice

from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.inventory import HostInventory
from rayhelm.planner.pool_use import GpuPart

__all__ = ["allocate", "count_possible_replicas"]


def count_possible_replicas(candidate: Candidate) -> int:
    """Return the replicas of a candidate that the free GPUs of its pool hold, at most as many as are planned."""
    if candidate.share < 1:
        hosts = candidate.split.matching_hosts
        gpus = (each for host in hosts for each in zip(host.free, host.parts, strict=True))
        room = sum(_count_shares(candidate, free, parts) for free, parts in gpus)
    elif candidate.split.hosts:
        room = _count_replicas_on_unlike_hosts(candidate)
    else:
        room = _count_replicas_on_like_hosts(candidate)
    return min(room, candidate.replicas)


def allocate(candidate: Candidate) -> None:
    """Allocate the GPUs of all replicas. Needs room for all of them."""
    if candidate.share == 1 and not candidate.split.hosts:
        _fill_like_hosts(candidate)
        return
    take = _take_share if candidate.share < 1 else _take_unlike
    for replica in range(candidate.replicas):
        take(candidate, replica)


def _count_replicas_on_like_hosts(candidate: Candidate) -> int:
    split, each, wanted = candidate.split, candidate.split.gpus_per_node, candidate.replicas
    if split.nodes > 1:
        return sum(host.free_gpu_count >= each for host in split.matching_hosts) // split.nodes
    room = 0
    for host in split.matching_hosts:
        room += host.free_gpu_count // each
        if room >= wanted:
            break
    return room


def _count_replicas_on_unlike_hosts(candidate: Candidate) -> int:
    """Count the replicas by allocating on a copy: a host holds one stage of one replica."""
    left = {host.name: host.free_gpu_count for host in candidate.split.inventory.hosts}
    for replica in range(candidate.replicas):
        hosts = _match_hosts(candidate, left)
        if hosts is None:
            return replica
        for host in hosts:
            left[host.name] -= candidate.split.shape.tp
    return candidate.replicas


def _match_hosts(candidate: Candidate, left: dict[str, int]) -> tuple[HostInventory, ...] | None:
    """Return a host with the right GPU for each stage; None if there are too few."""
    found: list[HostInventory] = []
    for wanted in candidate.split.hosts:
        alike = (
            host
            for host in candidate.split.inventory.hosts
            if host.gpu.id == wanted.gpu.id and left[host.name] >= candidate.split.shape.tp and host not in found
        )
        host = min(alike, key=lambda host: left[host.name], default=None)
        if host is None:
            return None
        found.append(host)
    return tuple(found)


def _fill_like_hosts(candidate: Candidate) -> None:
    """Take the hosts with fewest free GPUs first, so that whole hosts stay free."""
    split, each, left = candidate.split, candidate.split.gpus_per_node, candidate.replicas * candidate.split.nodes
    parts = iter(_list_parts(candidate))
    for host in sorted(
        (host for host in split.matching_hosts if host.free_gpu_count >= each), key=lambda host: host.free_gpu_count
    ):
        here = min(left, host.free_gpu_count // each if split.nodes == 1 else 1)
        host.take_whole(islice(parts, here * each))
        left -= here
        if not left:
            break


def _take_unlike(candidate: Candidate, replica: int) -> None:
    tp = candidate.split.shape.tp
    hosts = _match_hosts(candidate, {host.name: host.free_gpu_count for host in candidate.split.inventory.hosts}) or ()
    for stage, host in enumerate(hosts):
        host.take_whole(_build_part(candidate, replica, rank) for rank in range(stage * tp, (stage + 1) * tp))


def _take_share(candidate: Candidate, replica: int) -> None:
    """Take the GPU with the least free fraction that is large enough: one of the same service, else a free one."""
    spots = [
        (free, host, index)
        for host in candidate.split.matching_hosts
        for index, (free, parts) in enumerate(zip(host.free, host.parts, strict=True))
        if _count_shares(candidate, free, parts)
    ]
    _, host, index = min(spots, key=lambda spot: spot[0])
    host.take(index, candidate.share, _build_part(candidate, replica, 0))


def _list_parts(candidate: Candidate) -> Sequence[GpuPart]:
    """Return the parts of all replicas, one replica after the other. A search allocates a candidate many times."""
    if not candidate.parts:
        ranks = range(candidate.split.shape.gpu_count)
        candidate.parts.extend(
            _build_part(candidate, each, rank) for each in range(candidate.replicas) for rank in ranks
        )
    return candidate.parts


def _build_part(candidate: Candidate, replica: int, rank: int) -> GpuPart:
    return GpuPart(candidate.model_spec.name, candidate.model_spec.service, replica, rank)


def _count_shares(candidate: Candidate, free: float, parts: tuple[GpuPart, ...]) -> int:
    """Return the replicas that fit on a GPU. Services do not share GPUs, because each Ray cluster schedules its own
    GPUs."""
    is_shareable = not parts or parts[0].service == candidate.model_spec.service
    return int((free + 1e-9) / candidate.share) if is_shareable else 0
