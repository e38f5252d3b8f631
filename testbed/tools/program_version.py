"""Read the version of a program."""

import mmap
import os
import re
import subprocess
from functools import lru_cache
from pathlib import Path

from testbed.tools.catalog import Tool

__all__ = ["NotRunnable", "read_version"]

PATIENCE = 120.0
"""Timeout in seconds: a program of 150 MB may have to be read from disk first."""
_NOTE = b"\xff Go buildinf:"
_STRINGS_FOLLOW = 2
_HEADER = 32


class NotRunnable(Exception):
    """The file does not exist or is not executable, as the message states."""


def read_version(tool: Tool, path: Path) -> str:
    """Return the version that the program reports; empty if it reports none. Raises NotRunnable."""
    if not path.is_file():
        raise NotRunnable("does not exist" if not path.exists() else "is not a file")
    if not os.access(path, os.X_OK):
        raise NotRunnable("is not executable (chmod +x)")
    about = path.stat()
    changed = (about.st_mtime_ns, about.st_size)
    if tool.ask:
        return _ask_version(path, tool.ask, tool.answer, changed)
    assert tool.module
    return _read_build_info(path, tool.module.recipe.module, changed)


@lru_cache
def _ask_version(path: Path, ask: tuple[str, ...], answer: str, _changed: tuple[int, int]) -> str:
    found = re.search(answer, _run_program(path, ask), re.MULTILINE)
    return found[1] if found else ""


def _run_program(path: Path, ask: tuple[str, ...]) -> str:
    try:
        ended = subprocess.run([path, *ask], capture_output=True, text=True, errors="replace", timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise NotRunnable(f"did not answer `{path.name} {' '.join(ask)}` within {PATIENCE:.0f} s") from None
    except OSError as error:
        raise NotRunnable(f"cannot be run: {error.strerror}") from None
    return ended.stdout + ended.stderr


@lru_cache
def _read_build_info(path: Path, module: str, _changed: tuple[int, int]) -> str:
    """Return the version of a module from the build information in a Go program."""
    with path.open("rb") as file:
        if not path.stat().st_size:
            return ""
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            start = data.find(_NOTE)
            note = data[start : start + 65536] if start >= 0 else b""
    if len(note) <= _HEADER or not note[len(_NOTE) + 1] & _STRINGS_FOLLOW:
        return ""
    found = re.search(rf"\b(?:mod|dep)\t{re.escape(module)}\tv(\d+\.\d+\.\d+)", note.decode("utf-8", "replace"))
    return found[1] if found else ""
