"""Replicas of two kinds: those that compute prompts, and those that compute answers."""

from dataclasses import dataclass

from rayhelm.planner.placement.kv_transfer import KvTransfer

__all__ = ["RoleCapacity", "Roles"]


@dataclass(frozen=True)
class RoleCapacity:
    """The replicas of one kind."""

    replicas: int
    """Planned: `needed` and `spare`, or what is pinned."""
    needed: int
    """For the planned load."""
    spare: int
    fewest: int
    """For the quietest hour, with the spare ones; all of them if the number is pinned."""
    gpu_s: float
    """GPU-seconds of one request."""
    in_flight: int
    """Requests in flight per replica that the autoscaler aims at."""

    @property
    def is_overloaded(self) -> bool:
        return self.replicas < self.needed


@dataclass(frozen=True)
class Roles:
    """Both kinds. They have the same split, the same engine arguments and so the same memory."""

    prefill: RoleCapacity
    decode: RoleCapacity
    transfer: KvTransfer

    @property
    def is_overloaded(self) -> bool:
        return self.prefill.is_overloaded or self.decode.is_overloaded
