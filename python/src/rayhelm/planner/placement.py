"""Takes cards out of pools for replicas, and finds that there are not enough."""

from dataclasses import dataclass

from rayhelm.planner.candidates import Candidate
from rayhelm.planner.site import HostSite

__all__ = ["Placement", "place", "room_for"]


@dataclass(frozen=True)
class Placement:
    """Hosts that one replica stands on."""

    hosts: tuple[HostSite, ...]


def room_for(candidate: Candidate) -> int:
    """How many replicas of this shape the pool has room for, up to what is wanted."""
    taken: list[tuple[HostSite, list[float], list[str]]] = []
    placed = 0
    for host in candidate.split.pool.hosts:
        taken.append((host, list(host.free), list(host.owner)))
    while placed < candidate.replicas and _take(candidate) is not None:
        placed += 1
    for host, free, owner in taken:
        host.free, host.owner = free, owner
    return placed


def place(candidate: Candidate) -> tuple[Placement, ...]:
    """Take the cards of all replicas; the caller has asked `room_for`."""
    return tuple(Placement(hosts) for _ in range(candidate.replicas) if (hosts := _take(candidate)) is not None)


def _take(candidate: Candidate) -> tuple[HostSite, ...] | None:
    split = candidate.split
    if candidate.share < 1:
        return _take_share(candidate)
    wanted = split.hosts or _hosts_with(split.pool.hosts, split.nodes, split.cards)
    if wanted is None:
        return None
    left = split.cards
    for host in wanted:
        here = split.tp if split.hosts else min(left, host.cards)
        if host.whole < here:
            return None
        for card in [card for card, free in enumerate(host.free) if free == 1.0][:here]:
            host.take(card, 1.0, candidate.wish.service)
        left -= here
    return tuple(wanted)


def _hosts_with(hosts: list[HostSite], nodes: int, cards: int) -> tuple[HostSite, ...] | None:
    """The fullest host that still has room, so that whole hosts stay free; several hosts have to be empty."""
    if nodes > 1:
        empty = [host for host in hosts if host.whole == host.cards]
        return tuple(empty[:nodes]) if len(empty) >= nodes else None
    roomy = sorted((host for host in hosts if host.whole >= cards), key=lambda host: host.whole)
    return (roomy[0],) if roomy else None


def _take_share(candidate: Candidate) -> tuple[HostSite, ...] | None:
    """A card that the same service shares already, else a whole one: cards are not shared between services, because
    every Ray cluster books its cards alone."""
    service, share = candidate.wish.service, candidate.share
    hosts = candidate.split.hosts or tuple(candidate.split.pool.hosts)
    spots = [
        (free, host, card)
        for host in hosts
        for card, free in enumerate(host.free)
        if free + 1e-9 >= share and (free == 1.0 or host.owner[card] == service)
    ]
    if not spots:
        return None
    _, host, card = min(spots, key=lambda spot: spot[0])
    host.take(card, share, service)
    return (host,)
