"""Names in the fleet file that refer to an entry elsewhere in it."""

from collections.abc import Iterable, Iterator

from rayhelm.errors import Problem
from rayhelm.spec.document import Document
from rayhelm.spec.nearest import did_you_mean
from rayhelm.spec.yaml_nodes import Path

__all__ = ["reference"]


def reference(
    document: Document,
    path: Path,
    name: str,
    known: Iterable[str],
    what: str,
    lead: str = "",
) -> Iterator[Problem]:
    names = list(known)
    if name not in names:
        yield document.problem(path, f"{lead or f'there is no {what}'} `{name}`", did_you_mean(name, names))
