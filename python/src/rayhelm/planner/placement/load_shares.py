"""Divide the load of a model over several pools: the first pool is filled first, and each pool has a replica at least.

The order of the pools decides, not their prices or free GPUs, so that a small edit moves few replicas.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from rayhelm.planner.placement.allocate import count_possible_replicas
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.choose import Comparison
from rayhelm.planner.placement.model_spec import LoadShare, ResolvedModelSpec
from rayhelm.planner.placement.spare_replicas import count_spare_replicas

__all__ = ["PoolRoom", "assign_shares", "count_replicas", "find_room"]

_ROUNDING = 1e-9


@dataclass(frozen=True)
class PoolRoom:
    """What the free GPUs of a pool hold of a model."""

    candidate: Candidate
    """Split of one replica, evaluated for the whole load."""
    replicas: int
    """Most replicas, without spare ones."""

    @property
    def each(self) -> float:
        """What one replica has of `load`. Without an estimate of speed it has all of it."""
        spec = self.candidate.model_spec.declared
        return 1.0 if spec.replicas is not None else self.candidate.capacity.carried or self.load

    @property
    def load(self) -> float:
        """Load of the model on all pools: requests/s, or pinned replicas; 1 without either."""
        spec = self.candidate.model_spec.declared
        if isinstance(spec.replicas, int):
            return float(spec.replicas)
        return spec.traffic.peak_rate if spec.traffic else 1.0

    def count_spare(self, replicas: int) -> int:
        """Return the spare replicas for `slo.capacityAvailability` beside so many others."""
        target = self.candidate.model_spec.declared.slo.capacity_availability
        return count_spare_replicas(replicas, self.candidate.split.shape.gpu_count, target)


def find_room(compared: Comparison) -> PoolRoom | None:
    """Return the room for a model that was compared on one pool; None if it fits nowhere there."""
    if compared.choice:
        return _count_room(compared.choice.candidate)
    usable = [each for each in compared.reachable if not any(each.faults)] or compared.reachable
    rooms = [_count_room(each) for each in usable]
    return max(rooms, key=lambda room: room.replicas * (room.candidate.capacity.carried or 1.0), default=None)


def _count_room(candidate: Candidate) -> PoolRoom:
    free = count_possible_replicas(candidate)
    room = PoolRoom(candidate, free)
    if candidate.model_spec.declared.replicas is not None:
        return room
    counts = range(min(free, candidate.capacity.needed), 0, -1)
    return PoolRoom(candidate, next((count for count in counts if count + room.count_spare(count) <= free), 0))


def count_replicas(rooms: Sequence[PoolRoom]) -> tuple[list[int], float]:
    """Return the replicas of each pool, and the load that is left over: requests/s, or pinned replicas."""
    left = load = rooms[0].load
    counts = []
    for index, room in enumerate(rooms):
        later = sum(other.each for other in rooms[index + 1 :])
        count = max(1, ceil((left - later) / room.each - _ROUNDING))
        counts.append(min(count, room.replicas))
        left -= counts[-1] * room.each
    return counts, left if left > _ROUNDING * load else 0.0


def assign_shares(
    parts: Sequence[ResolvedModelSpec], rooms: Sequence[PoolRoom], counts: Sequence[int]
) -> list[ResolvedModelSpec]:
    """Return the parts of a model with their shares of the load."""
    speeds = [room.candidate.capacity.carried for room in rooms]
    served = [count * (speed if all(speeds) and speed else 1.0) for count, speed in zip(counts, speeds, strict=True)]
    names = tuple(part.name for part in parts)
    found = []
    for part, count, rate in zip(parts, counts, served, strict=True):
        share, spec = LoadShare(rate / sum(served), count, sum(counts), names), part.declared
        update: dict[str, object] = {"replicas": count} if spec.replicas is not None else {}
        if spec.traffic:
            update["traffic"] = spec.traffic.multiply(share.part * (1 - _ROUNDING))
        found.append(replace(part, declared=spec.model_copy(update=update), share=share))
    return found
