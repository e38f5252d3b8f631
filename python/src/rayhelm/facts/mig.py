"""MIG profiles of a GPU, and which instances fit together. One file in `data/mig/` for GPUs with the same profiles.

A GPU has a row of memory slices. An instance takes adjacent slices, from one of the start positions of its profile;
instances do not overlap. Compute slices follow from that.
"""

from collections.abc import Mapping
from itertools import product
from typing import Annotated

from pydantic import Field

from rayhelm.facts.closed import Closed

__all__ = ["MigProfile", "MigTable"]

Slices = Annotated[int, Field(ge=1, le=8)]


class MigProfile(Closed):
    """One MIG profile: `3g.40gb`."""

    compute: Slices
    """Compute slices of an instance."""
    memory: Slices
    """Memory slices of an instance."""
    starts: Annotated[tuple[Annotated[int, Field(ge=0, le=7)], ...], Field(min_length=1)]
    """Memory slices at which an instance can start."""
    gib: Annotated[float, Field(gt=0)] | None = None
    """Memory that the driver reports, GiB; None if no published value was found."""


class MigTable(Closed):
    """MIG profiles of GPUs with the same memory."""

    id: str
    aliases: tuple[str, ...] = ()
    gpus: str
    """GPUs that the table is valid for, as text."""
    compute_slices: Slices
    memory_slices: Slices
    profiles: dict[str, MigProfile]
    source: str
    """Source of names, start positions and memory."""

    def fits(self, layout: Mapping[str, int]) -> bool:
        """Return whether the instances fit together on one GPU. `layout`: number of instances by profile."""
        wanted = [self.profiles[name] for name, count in layout.items() for _ in range(count)]
        return self._can_place(sorted(wanted, key=lambda profile: len(profile.starts)), 0)

    def most(self, profile: str) -> int:
        """Return the instances of one profile that fit on a GPU."""
        return max(count for count in range(self.memory_slices + 1) if self.fits({profile: count}))

    def parts(self, shares: int) -> str | None:
        """Return the largest profile of which `shares` instances fit, more compute slices first; None if there is
        none."""
        found = [name for name in self.profiles if self.most(name) >= shares]
        return max(found, key=lambda name: (self.profiles[name].memory, self.profiles[name].compute), default=None)

    @property
    def largest(self) -> tuple[dict[str, int], ...]:
        """Every layout to which no instance can be added. Each layout that fits is a part of one of them."""
        found: list[dict[str, int]] = []
        counts = [range(self.most(profile) + 1) for profile in self.profiles]
        layouts = (dict(zip(self.profiles, count, strict=True)) for count in product(*counts))
        fitting = [layout for layout in layouts if any(layout.values()) and self.fits(layout)]
        for layout in sorted(fitting, key=lambda layout: -sum(layout.values())):
            if not any(all(layout[name] <= other.get(name, 0) for name in layout) for other in found):
                found.append({name: count for name, count in layout.items() if count})
        return tuple(found)

    def _can_place(self, wanted: list[MigProfile], taken: int) -> bool:
        """Return whether the instances fit on the free memory slices. `taken`: a bit for each used slice."""
        if not wanted:
            return True
        first, rest = wanted[0], wanted[1:]
        spans = (((1 << first.memory) - 1) << start for start in first.starts)
        return any(self._can_place(rest, taken | span) for span in spans if not taken & span)
