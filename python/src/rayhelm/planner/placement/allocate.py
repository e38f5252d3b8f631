"""Allocate GPUs of a pool to replicas."""

from collections.abc import Iterator, Sequence

from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.inventory import HostInventory

__all__ = ["allocate", "count_possible_replicas"]


def count_possible_replicas(candidate: Candidate) -> int:
    """Return the replicas of a candidate that the free GPUs of its pool hold, at most as many as are planned."""
    if candidate.share < 1:
        room = sum(_count_shares(candidate, free, owner) for free, owner in _list_gpus(candidate))
    elif candidate.split.hosts:
        room = _count_replicas_on_unlike_hosts(candidate)
    else:
        room = _count_replicas_on_like_hosts(candidate)
    return min(room, candidate.replicas)


def allocate(candidate: Candidate) -> tuple[HostInventory, ...]:
    """Allocate the GPUs of all replicas; return the hosts of the first one. Needs room for all of them."""
    if candidate.share == 1 and not candidate.split.hosts:
        return _fill_like_hosts(candidate)
    take = _take_share if candidate.share < 1 else _take_unlike
    placed = [take(candidate) for _ in range(candidate.replicas)]
    return placed[0] if placed else ()


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


def _fill_like_hosts(candidate: Candidate) -> tuple[HostInventory, ...]:
    """Return the hosts with fewest free GPUs first, so that whole hosts stay free."""
    split, each, left = candidate.split, candidate.split.gpus_per_node, candidate.replicas * candidate.split.nodes
    used: list[HostInventory] = []
    for host in sorted(
        (host for host in split.matching_hosts if host.free_gpu_count >= each), key=lambda host: host.free_gpu_count
    ):
        here = min(left, host.free_gpu_count // each if split.nodes == 1 else 1)
        host.take_whole(here * each, candidate.model_spec.service)
        used.append(host)
        left -= here
        if not left:
            break
    return tuple(used[: split.nodes])


def _take_unlike(candidate: Candidate) -> tuple[HostInventory, ...]:
    hosts = _match_hosts(candidate, {host.name: host.free_gpu_count for host in candidate.split.inventory.hosts}) or ()
    for host in hosts:
        host.take_whole(candidate.split.shape.tp, candidate.model_spec.service)
    return hosts


def _take_share(candidate: Candidate) -> tuple[HostInventory, ...]:
    """Return the GPU with the least free fraction that is large enough: one of the same service, else a free one."""
    spots = [
        (free, host, index)
        for host in _share_hosts(candidate)
        for index, (free, owner) in enumerate(zip(host.free, host.owners, strict=True))
        if _count_shares(candidate, free, owner)
    ]
    _, host, index = min(spots, key=lambda spot: spot[0])
    host.take(index, candidate.share, candidate.model_spec.service)
    return (host,)


def _count_shares(candidate: Candidate, free: float, owner: str) -> int:
    """Return the replicas that fit on a GPU. Services do not share GPUs, because each Ray cluster schedules its own
    GPUs."""
    mine = owner in ("", candidate.model_spec.service)
    return int((free + 1e-9) / candidate.share) if mine and (free == 1.0 or owner) else 0


def _list_gpus(candidate: Candidate) -> Iterator[tuple[float, str]]:
    for host in _share_hosts(candidate):
        yield from zip(host.free, host.owners, strict=True)


def _share_hosts(candidate: Candidate) -> Sequence[HostInventory]:
    """Return hosts with the GPU of the candidate."""
    return candidate.split.matching_hosts
