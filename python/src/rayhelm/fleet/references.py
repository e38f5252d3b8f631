"""Names in the fleet file that refer to an entry elsewhere in it."""

from collections.abc import Iterable, Iterator

from rayhelm.errors import Fix, Problem
from rayhelm.fleet.document import Document
from rayhelm.fleet.nearest import list_known, nearest
from rayhelm.fleet.yaml_nodes import Path

__all__ = ["reference"]


def reference(
    document: Document,
    path: Path,
    name: str,
    known: Iterable[str],
    what: str,
    lead: str = "",
    removal: str = "",
) -> Iterator[Problem]:
    """The problem of a name that is not `known`. `removal` is the path of what to remove if there is no other name;
    the path is relative to `path`."""
    names = list(known)
    if name in names:
        return
    message = f"{lead or f'there is no {what}'} `{name}`"
    listed = document.value(path[:-1]) if path and isinstance(path[-1], int) else ()
    others = [other for other in names if other not in listed]
    near = nearest(name, others)
    fixes = [Fix("", other) for other in near] or [Fix("", other, list_known(others)) for other in others[:1]]
    first, *rest = fixes or [Fix.removal(removal)]
    yield document.problem(path, message, first, alternatives=rest)
