"""The candidates of each model in the order of their rank, evaluated as far as they are needed."""

from collections.abc import Iterator, Mapping
from itertools import takewhile

from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.choose import FLAGS, rank
from rayhelm.planner.placement.options import ModelOptions

__all__ = ["NEVER", "Rank", "RankedCandidates"]

Rank = tuple[float, ...]
"""The faults of a candidate and its cost: the first criteria of `choose`."""

NEVER = float("inf")
"""Cost limit with which all candidates are listed, those with a fault too."""
_MOST_GROWTH = 4.0
"""Factor on the first cost from which all candidates are evaluated."""


class RankedCandidates:
    """The candidates of each model, the best first, regardless of room. Expensive ones are evaluated on demand."""

    def __init__(self, options: Mapping[str, ModelOptions]) -> None:
        self._options = options
        self._found: dict[str, tuple[float, list[tuple[Rank, Candidate]]]] = {}

    def iterate(self, name: str, most: float, first: float = 0.0) -> Iterator[tuple[Rank, Candidate]]:
        """Yield candidates with their rank: those without a fault that cost at most `most`, and all if it is infinite.
        `first`: cost up to which they are evaluated at once; more are evaluated when they are asked for."""
        known, limit = 0, min(most, first or most)
        while True:
            found = self._list(name, limit)
            yield from found[known:]
            if limit >= most:
                return
            known, limit = len(found), NEVER if limit > first * _MOST_GROWTH else min(most, limit * 2)

    def _list(self, name: str, most: float) -> list[tuple[Rank, Candidate]]:
        """List candidates, the best first. Below an infinite cost only those without a fault are complete, so others
        are left out."""
        listed, found = self._found.get(name, (0.0, []))
        if most > listed:
            options = self._options[name]
            ranked = [(rank(each, options.by_price), each) for each in options.list_up_to(most)]
            ranked.sort(key=lambda pair: (pair[0], pair[1].split.inventory.name))
            found = [(key[: FLAGS + 1], each) for key, each in ranked]
            self._found[name] = (most, found)
        if most == NEVER:
            return found
        return list(takewhile(lambda pair: not any(pair[0][:FLAGS]) and pair[0][FLAGS] <= most, found))
