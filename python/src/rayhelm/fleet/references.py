"""Names in the fleet file that refer to an entry elsewhere in it."""

from collections.abc import Iterable, Iterator, Sequence

from rayhelm.errors import Fix, Problem
from rayhelm.fleet.nearest import list_known, nearest
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.yaml_nodes import Path

__all__ = ["reference"]


def reference(
    path: Path,
    name: str,
    known: Iterable[str],
    what: str,
    lead: str = "",
    removal: str = "",
    listed: Sequence[str] = (),
) -> Iterator[Problem]:
    """The problem of a name that is not `known`. `removal` is the path of what to remove if there is no other name;
    the path is relative to `path`. `listed`: names that the list has already."""
    names = list(known)
    if name in names:
        return
    message = f"{lead or f'there is no {what}'} `{name}`"
    others = [other for other in names if other not in listed]
    near = nearest(name, others)
    fixes = [Fix("", other) for other in near] or [Fix("", other, list_known(others)) for other in others[:1]]
    first, *rest = fixes or [Fix.removal(removal)]
    yield problem_at(path, message, first, alternatives=rest)
