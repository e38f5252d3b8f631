"""The folder that `rayhelm render` writes into: what differs there, and what it wrote once and no more."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rayhelm.errors import FleetError, Problem
from rayhelm.render.files import Rendered, mark_of, names_of

__all__ = ["Difference", "compare", "write"]

KINDS = ("platform", "tenant", "ray-service", "gateway", "manifests")
"""Folders that values and objects are written into."""


@dataclass(frozen=True)
class Difference:
    """Names of files below the folder."""

    stale: tuple[str, ...]
    """To be written: missing there, or other than they should be."""
    current: tuple[str, ...]
    leftover: tuple[str, ...]
    """To be removed: written for a release that the fleet no longer has."""


def compare(folder: Path, files: Mapping[str, str], rendered: Rendered) -> Difference:
    """What would have to change in `folder`. Raises FleetError where it cannot be read."""
    current = tuple(name for name, text in files.items() if _read(folder / name) == text.encode())
    stale = tuple(name for name in files if name not in current)
    return Difference(stale, current, tuple(_leftover(folder, rendered)))


def write(folder: Path, files: Mapping[str, str], difference: Difference) -> None:
    """Make the folder current. Raises FleetError where it cannot be written."""
    for name in difference.stale:
        _write(folder / name, files[name])
    for name in difference.leftover:
        try:
            (folder / name).unlink()
        except OSError as error:
            raise FleetError(_cannot("removed", folder / name, error)) from None


def _leftover(folder: Path, rendered: Rendered) -> list[str]:
    """Files with our header, beside a plan of this very fleet: a folder may be shared by hand-written files."""
    fleet = rendered.plan.fleet
    if f"# Plan of `{fleet}`".encode() not in (_read(folder / "plan.md") or b"").splitlines():
        return []
    mark, known = f"# {mark_of(rendered)};".encode(), names_of(rendered)
    return [
        name
        for kind in KINDS
        for path in sorted((folder / kind).rglob("*.yaml"))
        if (name := path.relative_to(folder).as_posix()) not in known
        and any(line.startswith(mark) for line in (_read(path) or b"").splitlines()[:2])
    ]


def _read(path: Path) -> bytes | None:
    """None where no file is."""
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError as error:
        raise FleetError(_cannot("read", path, error)) from None


def _write(path: Path, text: str) -> None:
    """Beside it first: whoever reads meanwhile, or a full disk, never leaves half a file under the name."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise FleetError(_cannot("written", path, error)) from None


def _cannot(what: str, path: Path, error: OSError) -> Problem:
    fix = "rayhelm render FLEET -o FOLDER   # a folder that you may write to, with room"
    why = str(error.strerror)
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        why = "a file stands where a folder has to be"
    return Problem(f"cannot be {what}: {why}", file=str(path), fix=fix)
