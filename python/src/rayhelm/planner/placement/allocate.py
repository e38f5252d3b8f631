"""Takes cards out of pools for replicas, and finds that there are not enough."""

from collections.abc import Iterator, Sequence

from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.inventory import HostSite

__all__ = ["place", "room_for"]


def room_for(candidate: Candidate) -> int:
    """How many replicas of this shape the pool has room for, up to what is planned."""
    if candidate.share < 1:
        room = sum(_shares_left(candidate, free, owner) for free, owner in _cards(candidate))
    elif candidate.split.hosts:
        room = _room_on_unlike_hosts(candidate)
    else:
        room = _room_on_like_hosts(candidate)
    return min(room, candidate.replicas)


def place(candidate: Candidate) -> tuple[HostSite, ...]:
    """Take the cards of all replicas; the caller has asked `room_for`. The hosts of the first replica."""
    if candidate.share == 1 and not candidate.split.hosts:
        return _fill_like_hosts(candidate)
    take = _take_share if candidate.share < 1 else _take_unlike
    placed = [take(candidate) for _ in range(candidate.replicas)]
    return placed[0] if placed else ()


def _room_on_like_hosts(candidate: Candidate) -> int:
    split, each = candidate.split, candidate.split.cards_per_node
    if split.nodes == 1:
        return sum(host.whole // each for host in split.sites)
    return sum(host.whole >= each for host in split.sites) // split.nodes


def _room_on_unlike_hosts(candidate: Candidate) -> int:
    """By trying: the same host may serve as a stage of one replica only."""
    left = {host.name: host.whole for host in candidate.split.pool.hosts}
    for replica in range(candidate.replicas):
        hosts = _matching(candidate, left)
        if hosts is None:
            return replica
        for host in hosts:
            left[host.name] -= candidate.split.tp
    return candidate.replicas


def _matching(candidate: Candidate, left: dict[str, int]) -> tuple[HostSite, ...] | None:
    """A host with the right card for each stage."""
    found: list[HostSite] = []
    for wanted in candidate.split.hosts:
        alike = (
            host
            for host in candidate.split.pool.hosts
            if host.gpu.id == wanted.gpu.id and left[host.name] >= candidate.split.tp and host not in found
        )
        host = min(alike, key=lambda host: left[host.name], default=None)
        if host is None:
            return None
        found.append(host)
    return tuple(found)


def _fill_like_hosts(candidate: Candidate) -> tuple[HostSite, ...]:
    """The fullest hosts first, so that whole hosts stay free."""
    split, each, left = candidate.split, candidate.split.cards_per_node, candidate.replicas * candidate.split.nodes
    used: list[HostSite] = []
    for host in sorted((host for host in split.sites if host.whole >= each), key=lambda host: host.whole):
        here = min(left, host.whole // each if split.nodes == 1 else 1)
        host.take_whole(here * each, candidate.wish.service)
        used.append(host)
        left -= here
        if not left:
            break
    return tuple(used[: split.nodes])


def _take_unlike(candidate: Candidate) -> tuple[HostSite, ...]:
    hosts = _matching(candidate, {host.name: host.whole for host in candidate.split.pool.hosts}) or ()
    for host in hosts:
        host.take_whole(candidate.split.tp, candidate.wish.service)
    return hosts


def _take_share(candidate: Candidate) -> tuple[HostSite, ...]:
    """The fullest card with room: one that the service shares already, else a whole one."""
    spots = [
        (free, host, card)
        for host in _share_hosts(candidate)
        for card, (free, owner) in enumerate(zip(host.free, host.owner, strict=True))
        if _shares_left(candidate, free, owner)
    ]
    _, host, card = min(spots, key=lambda spot: spot[0])
    host.take(card, candidate.share, candidate.wish.service)
    return (host,)


def _shares_left(candidate: Candidate, free: float, owner: str) -> int:
    """Cards are not shared between services, because every Ray cluster books its cards alone."""
    mine = owner in ("", candidate.wish.service)
    return int((free + 1e-9) / candidate.share) if mine and (free == 1.0 or owner) else 0


def _cards(candidate: Candidate) -> Iterator[tuple[float, str]]:
    for host in _share_hosts(candidate):
        yield from zip(host.free, host.owner, strict=True)


def _share_hosts(candidate: Candidate) -> Sequence[HostSite]:
    """Hosts with the right card."""
    return candidate.split.sites
