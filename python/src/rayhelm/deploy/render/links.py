"""Links in a folder that files are written into."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from rayhelm.errors import Fix, Problem

__all__ = ["find_links"]


def find_links(folder: Path, names: Iterable[str]) -> Iterator[Problem]:
    """Yield a problem for each path to write that is a link, or is below one. A pull request can add a link, and the
    file behind it would be overwritten or copied. `folder` itself may be a link of the user."""
    paths = {path for name in names for path in (Path(name), *Path(name).parents)} - {Path()}
    for path in sorted(paths):
        if (folder / path).is_symlink():
            fix = Fix(command=f"rm {folder / path}", why="it removes the link alone; then run the command again")
            yield Problem("is a link, and nothing is written through links", file=str(folder / path), fix=fix)
