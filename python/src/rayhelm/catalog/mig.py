"""MIG: into which parts a card can be cut, and which of them fit together. One file in `data/mig/` for cards alike.

A card has so many memory slices in a row. An instance of a profile takes some of them, from one of the profile's own
places on, and no slice twice; the compute slices follow.
"""

from collections.abc import Mapping
from itertools import product
from typing import Annotated

from pydantic import Field

from rayhelm.closed import Closed

__all__ = ["MigProfile", "MigTable"]

Slices = Annotated[int, Field(ge=1, le=8)]


class MigProfile(Closed):
    """One profile: `3g.40gb`."""

    compute: Slices
    """Compute slices that an instance has."""
    memory: Slices
    """Memory slices that it takes."""
    starts: Annotated[tuple[Annotated[int, Field(ge=0, le=7)], ...], Field(min_length=1)]
    """Memory slices at which one may begin."""
    gib: Annotated[float, Field(gt=0)] | None = None
    """Memory as the driver tells it, GiB; None where nobody has shown it."""


class MigTable(Closed):
    """The profiles of cards with the same memory."""

    id: str
    aliases: tuple[str, ...] = ()
    gpus: str
    """GPUs that the table is valid for, in words."""
    compute_slices: Slices
    memory_slices: Slices
    profiles: dict[str, MigProfile]
    source: str
    """Where names, places and memory were read."""

    def fits(self, layout: Mapping[str, int]) -> bool:
        """Whether so many instances of each profile have room on one card, side by side."""
        wanted = [self.profiles[name] for name, count in layout.items() for _ in range(count)]
        return self._placed(sorted(wanted, key=lambda profile: len(profile.starts)), 0)

    def most(self, profile: str) -> int:
        """Instances of one profile that fit on a card."""
        return max(count for count in range(self.memory_slices + 1) if self.fits({profile: count}))

    def parts(self, shares: int) -> str | None:
        """The largest profile of which so many fit, the one with more cores where two are alike; None where none is
        small enough."""
        found = [name for name in self.profiles if self.most(name) >= shares]
        return max(found, key=lambda name: (self.profiles[name].memory, self.profiles[name].compute), default=None)

    @property
    def largest(self) -> tuple[dict[str, int], ...]:
        """Every layout to which no instance can be added: what fits is a part of one of them."""
        found: list[dict[str, int]] = []
        counts = [range(self.most(profile) + 1) for profile in self.profiles]
        layouts = (dict(zip(self.profiles, count, strict=True)) for count in product(*counts))
        fitting = [layout for layout in layouts if any(layout.values()) and self.fits(layout)]
        for layout in sorted(fitting, key=lambda layout: -sum(layout.values())):
            if not any(all(layout[name] <= other.get(name, 0) for name in layout) for other in found):
                found.append({name: count for name, count in layout.items() if count})
        return tuple(found)

    def _placed(self, wanted: list[MigProfile], taken: int) -> bool:
        """`taken`: a bit for each memory slice."""
        if not wanted:
            return True
        first, rest = wanted[0], wanted[1:]
        spans = (((1 << first.memory) - 1) << start for start in first.starts)
        return any(self._placed(rest, taken | span) for span in spans if not taken & span)
