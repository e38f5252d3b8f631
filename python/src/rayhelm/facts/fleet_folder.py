"""Files that a fleet file names: they are below its folder.

A pull request can name any file, `rayhelm lint` and `diff` run on pull requests, and their messages are in public logs.
"""

from pathlib import Path, PurePosixPath

from rayhelm.errors import Fix, FleetError, Problem

__all__ = ["OUTSIDE", "check_link", "find_outside_reason", "is_plain_path"]

OUTSIDE = "is not a path below the folder of the fleet file, from which all of its files are read"
_PRIVATE = ".git"
"""Git keeps credentials of CI jobs in its own folder."""


def is_plain_path(name: str) -> bool:
    """Return whether a path is relative, and has neither `..` nor the folder of git. Links are not followed."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    return not (name.startswith(("/", "\\", "~")) or ".." in parts or _PRIVATE in map(str.lower, parts))


def find_outside_reason(folder: Path, name: str) -> str:
    """Return why the file `name` is not below `folder`, with links followed; empty if it is below it."""
    if not is_plain_path(name):
        return OUTSIDE
    try:
        root, file = folder.resolve(), (folder / name).resolve()
    except (OSError, RuntimeError):
        return "is a link that leads to itself"
    except ValueError:
        return "is not the name of a file"
    if file.is_relative_to(root) and is_plain_path(str(file.relative_to(root))):
        return ""
    return "is a link to a file that is not below the folder of the fleet file"


def check_link(file: Path) -> None:
    """Raises FleetError if a fleet file is a link to a file outside of its folder: its keys and values are in messages.
    `/dev/stdin` and pipes of a shell are links too, of the user."""
    if not file.is_symlink() or not file.is_file() or str(file.absolute()).startswith(("/dev/", "/proc/")):
        return
    if reason := find_outside_reason(file.parent, file.name):
        fix = Fix(command=f"rayhelm lint {file.resolve()}", why="name the file itself, if you trust it")
        raise FleetError(Problem(reason, file=str(file), fix=fix))
