"""Problems of keys of a fleet file, without the file: the source map adds line, file and what is written there."""

from collections.abc import Sequence

from rayhelm.errors import Fix, Problem
from rayhelm.fleet.yaml_nodes import Path, dotted

__all__ = ["problem_at"]


def problem_at(
    path: Path, message: str, fix: Fix | str = "", rule: str = "", alternatives: Sequence[Fix] = ()
) -> Problem:
    """Return the problem of the key at `path`. Paths of fixes are relative to it: `context` is below it, `..` the level
    above, `../x` a key beside it, `/x` one at the top."""
    return Problem(message, dotted(path), fix=fix, rule=rule, alternatives=tuple(alternatives), place=path)
