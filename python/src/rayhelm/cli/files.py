"""Write the files that a command was asked for."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rayhelm.deploy.render.links import find_links
from rayhelm.deploy.render.manifest import FolderManifest, checksum, manifest_text, read_manifest
from rayhelm.errors import Fix, FleetError, Problem, UsageError

__all__ = [
    "WrittenFolder",
    "as_json",
    "check_new",
    "check_writable",
    "describe_kept",
    "replace_file",
    "write_file",
    "write_folder",
]

_OF_THE_SYSTEM = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))
"""Folders of links that no pull request can add."""


@dataclass(frozen=True)
class WrittenFolder:
    """What a command did to a folder."""

    written: tuple[Path, ...] = ()
    removed: tuple[Path, ...] = ()
    """Files that an earlier run wrote, and this one does not."""
    kept: tuple[Path, ...] = ()
    """Those that were edited since."""


def write_folder(folder: Path, files: Mapping[str, str], manifest: str, command: str) -> WrittenFolder:
    """Write files by path below a folder, and remove those that an earlier run of the command wrote and this one does
    not. Files that were edited since, and files that it did not write, stay.

    `manifest` is the name of the file that lists what the command wrote; `command` is the command for messages. Raises
    FleetError if a file cannot be written or removed.
    """
    if links := list(find_links(folder, (*files, manifest))):
        raise FleetError(links)
    earlier = read_manifest(folder, manifest).files
    gone = [name for name in earlier if name not in files and (folder / name).is_file()]
    removed = [name for name in gone if _is_unchanged(folder, name, earlier[name])]
    for name, text in files.items():
        write_file(folder / name, text, command)
    for name in removed:
        _remove(folder / name, command)
    listed = {name: checksum(text.encode()) for name, text in files.items()}
    listed |= {name: earlier[name] for name in gone if name not in removed}
    # Last: after an interruption the next run still has the old list.
    program = " ".join(command.split()[:2])
    write_file(folder / manifest, manifest_text(FolderManifest(files=listed), program), command)
    return WrittenFolder(
        written=tuple(folder / name for name in files),
        removed=tuple(folder / name for name in removed),
        kept=tuple(folder / name for name in gone if name not in removed),
    )


def describe_kept(folder: WrittenFolder) -> list[str]:
    """Warnings about files that stay although the command no longer writes them."""
    return [f"{path}: is no longer written; kept, because it was edited. Remove it yourself" for path in folder.kept]


def as_json(folder: WrittenFolder) -> dict[str, list[str]]:
    """Return the paths for `--format json`."""
    return {name: [str(path) for path in getattr(folder, name)] for name in ("written", "removed", "kept")}


def _is_unchanged(folder: Path, name: str, checksum_: str) -> bool:
    """Return whether a file has the content that was written; False for a link to a file outside the folder."""
    path = folder / name
    return path.resolve().is_relative_to(folder.resolve()) and checksum(path.read_bytes()) == checksum_


def _remove(path: Path, command: str) -> None:
    try:
        path.unlink()
    except OSError as error:
        raise _refuse(path, error.strerror or str(error), command, "removed") from None


def write_file(path: Path, text: str, command: str) -> None:
    """Write a file, and its folder. `command` is the fix. Raises FleetError if the file cannot be written."""
    _refuse_link(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _refuse(path, error.strerror or str(error), command) from None


def replace_file(path: Path, before: str, after: str, command: str) -> None:
    """Replace the text of a file at once, so that a reader sees the old one or the new one. Raises FleetError if the
    file is no longer `before`, or cannot be written."""
    target = path.resolve()
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            new = Path(file.name)
            file.write(after.encode())
        try:
            new.chmod(target.stat().st_mode & 0o7777)
            if target.read_bytes() != before.encode():
                fix = Fix.advice("run the command again: it reads the file as it is now")
                raise FleetError(Problem("changed while the command ran, and was not written", file=str(path), fix=fix))
            new.replace(target)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise _refuse(path, error.strerror or str(error), command) from None


def check_writable(path: Path, command: str) -> None:
    """Create the folder of a file that is written later. Raises FleetError if the file could not be written."""
    _refuse_link(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _refuse(path, error.strerror or str(error), command) from None
    if path.is_dir():
        raise _refuse(path, "it is a folder", command)
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise _refuse(path, "Permission denied", command)


def check_new(path: Path, command: str) -> None:
    """Raises UsageError if the file exists, FleetError if it could not be written."""
    if path.exists():
        raise UsageError(f"{path} exists already, and is not overwritten. fix: -o another-file.yaml")
    check_writable(path, command)


def _refuse_link(path: Path) -> None:
    """Raise FleetError for a link: a pull request can add one. The system has links too: /dev/stdout, and /dev/fd/63 of
    `--page >(less)`."""
    if path.parent not in _OF_THE_SYSTEM and (links := list(find_links(path.parent, [path.name]))):
        raise FleetError(links)


def _refuse(path: Path, why: str, command: str, what: str = "written") -> FleetError:
    fix = Fix(command=command, why="a place that you may write to, on a disk with free space")
    return FleetError(Problem(f"cannot be {what}: {why}", file=str(path), fix=fix))
