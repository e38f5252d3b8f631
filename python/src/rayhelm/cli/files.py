"""Write the files that a command was asked for."""

import os
from pathlib import Path

from rayhelm.errors import Fix, FleetError, Problem

__all__ = ["check_writable", "write_file"]


def write_file(path: Path, text: str, command: str) -> None:
    """Write a file, and its folder. `command` is the fix. Raises FleetError if the file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _refuse(path, error.strerror or str(error), command) from None


def check_writable(path: Path, command: str) -> None:
    """Create the folder of a file that is written later. Raises FleetError if the file could not be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _refuse(path, error.strerror or str(error), command) from None
    if path.is_dir():
        raise _refuse(path, "it is a folder", command)
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise _refuse(path, "Permission denied", command)


def _refuse(path: Path, why: str, command: str) -> FleetError:
    fix = Fix(command=command, why="a place that you may write to, on a disk with free space")
    return FleetError(Problem(f"cannot be written: {why}", file=str(path), fix=fix))
