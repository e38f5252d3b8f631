"""The folder that `rayhelm render` writes into.

* Files of the fleet are written where they differ.
* Files that an earlier render wrote and this one does not are removed, unless they were edited since. The manifest
  lists them.
* Links are refused: what is behind them is not of this folder.
* Every other file is left alone. A file that was edited and has to be overwritten is first copied to `.rayhelm-edited`.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from rayhelm.deploy.render.files import Rendered, format_mark, list_paths
from rayhelm.deploy.render.links import find_links
from rayhelm.deploy.render.manifest import MANIFEST, FolderManifest, checksum, manifest_text, read_manifest
from rayhelm.errors import Fix, FleetError, Problem

__all__ = ["EDITED", "Difference", "compare", "write"]

KINDS = ("platform", "tenant", "ray-service", "gateway", "argocd", "manifests")
"""Folders that values and objects are written into."""
EDITED = ".rayhelm-edited"
"""Folder of copies of edited files that were overwritten; git ignores it."""
_WRITTEN_BY = b"Written by `rayhelm render"


@dataclass(frozen=True)
class Difference:
    """Changes of a render in a folder; names are paths below the folder."""

    stale: tuple[str, ...]
    """Files to write, which are missing or have other content."""
    current: tuple[str, ...]
    """Files that have the right content."""
    removed: tuple[str, ...]
    """Files to remove: an earlier render wrote them, they were not edited, and the fleet no longer has them."""
    kept: tuple[str, ...]
    """Files that the fleet no longer has and that stay, because they were edited or no manifest lists them."""
    edited: tuple[str, ...]
    """Those of `stale` that were edited; they are copied before they are overwritten."""
    outdated: tuple[str, ...]
    """Objects of an earlier `--manifests` that this render does not write."""
    manifest: str
    """New text of the manifest."""
    manifest_is_stale: bool


def compare(folder: Path, files: Mapping[str, str], rendered: Rendered) -> Difference:
    """Return the changes of a render in `folder`. Raises FleetError if the folder cannot be read, or has the files of
    another fleet."""
    _refuse_links(folder, (*files, *KINDS, MANIFEST))
    earlier = read_manifest(folder)
    _refuse_links(folder, (*files, *earlier.files))
    identity = _build_identity(folder, rendered)
    if (
        earlier.fleet
        and earlier.fleet != identity.fleet
        and not (identity.source and earlier.source == identity.source)
    ):
        raise FleetError(_build_other_fleet_problem(folder, earlier.fleet, identity.fleet))
    if earlier.source not in ("", identity.source) and (folder / earlier.source).is_file():
        raise FleetError(_build_other_file_problem(folder, earlier.source, rendered.plan.source.file))
    if blocked := list(_find_blocked(folder, files)):
        raise FleetError(blocked)
    there = {name: _read(folder / name) for name in (*files, *earlier.files)}
    current = tuple(name for name, text in files.items() if there[name] == text.encode())
    stale = tuple(name for name in files if name not in current)
    optional = list_paths(rendered) - files.keys()
    gone = [name for name in earlier.files if name not in files and name not in optional and there[name] is not None]
    removed = tuple(name for name in gone if _is_unedited(name, there[name], earlier))
    unlisted = _find_unlisted(folder, rendered) if not earlier.fleet else ()
    kept = (*(name for name in gone if name not in removed), *unlisted)
    outdated = tuple(name for name in earlier.files if name in optional and there[name] is not None)
    listed = {name: checksum(text.encode()) for name, text in files.items()}
    listed |= {name: earlier.files[name] for name in (*gone, *outdated) if name not in removed}
    manifest = manifest_text(replace(identity, files=listed))
    return Difference(
        stale=stale,
        current=current,
        removed=removed,
        kept=kept,
        edited=tuple(name for name in stale if _is_edited(name, there[name], earlier)),
        outdated=outdated,
        manifest=manifest,
        manifest_is_stale=_read(folder / MANIFEST) != manifest.encode(),
    )


def write(folder: Path, files: Mapping[str, str], difference: Difference) -> None:
    """Make the folder current. Raises FleetError if it cannot be written."""
    for name in difference.edited:
        _save(folder, name)
    for name in difference.stale:
        _write(folder / name, files[name])
    for name in difference.removed:
        _remove(folder, name)
    # Write the manifest last: after an interruption the next run still has the old list.
    if difference.manifest_is_stale:
        _write(folder / MANIFEST, difference.manifest)


def _refuse_links(folder: Path, names: Sequence[str]) -> None:
    if links := list(find_links(folder, (*names, *(f"{EDITED}/{name}" for name in names)))):
        raise FleetError(links)


def _build_identity(folder: Path, rendered: Rendered) -> FolderManifest:
    file = Path(rendered.plan.source.file)
    is_inside = file.parent.resolve() == folder.resolve()
    return FolderManifest(rendered.plan.fleet, file.name if is_inside else "")


def _is_unedited(name: str, content: bytes | None, earlier: FolderManifest) -> bool:
    """Return whether render wrote the file with this content."""
    return content is not None and checksum(content) == earlier.files[name]


def _is_edited(name: str, content: bytes | None, earlier: FolderManifest) -> bool:
    """Return whether the file was edited. Without a manifest, the header shows whether render wrote the file."""
    if content is None:
        return False
    if name in earlier.files:
        return checksum(content) != earlier.files[name]
    return not any(_WRITTEN_BY in line for line in content.splitlines()[:2])


def _find_unlisted(folder: Path, rendered: Rendered) -> tuple[str, ...]:
    """Return the files of a render without a manifest (rayhelm 0.1) that the fleet no longer has, by their header."""
    if f"# Plan of `{rendered.plan.fleet}`".encode() not in (_read(folder / "plan.md") or b"").splitlines():
        return ()
    mark, known = f"# {format_mark(rendered)};".encode(), list_paths(rendered)
    return tuple(
        name
        for kind in KINDS
        for path in sorted((folder / kind).rglob("*.yaml"))
        if (name := path.relative_to(folder).as_posix()) not in known
        and any(line.startswith(mark) for line in (_read(path) or b"").splitlines()[:2])
    )


def _build_other_fleet_problem(folder: Path, earlier: str, fleet: str) -> Problem:
    message = f"the folder has the files of fleet `{earlier}`, and this is fleet `{fleet}`: each needs its own folder"
    why = f"or, if the fleet was renamed, write `{fleet}` to `fleet` in {folder / MANIFEST}"
    return Problem(message, file=str(folder), fix=Fix(command="rayhelm render FLEET -o OTHER-FOLDER", why=why))


def _build_other_file_problem(folder: Path, earlier: str, file: str) -> Problem:
    message = f"the folder has the files of {folder / earlier}, and this is {file}: each fleet needs its own folder"
    why = f"or, if it replaces the other one, remove {folder / earlier}"
    return Problem(message, file=str(folder), fix=Fix(command=f"rayhelm render {file} -o OTHER-FOLDER", why=why))


def _find_blocked(folder: Path, files: Mapping[str, str]) -> Iterator[Problem]:
    """Yield what has the name of a file or folder to write, before anything is written."""
    for name in files:
        if (folder / name).is_dir():
            yield _build_blocked_problem(folder / name, "a folder has the name of a file that is needed")
    parents = {parent for name in files for parent in Path(name).parents}
    for parent in sorted(parents):
        if (folder / parent).exists() and not (folder / parent).is_dir():
            yield _build_blocked_problem(folder / parent, "a file has the name of a folder that is needed")


def _build_blocked_problem(path: Path, why: str) -> Problem:
    fix = Fix(command="rayhelm render FLEET -o FOLDER", why=f"another folder; or move {path} away")
    return Problem(f"cannot be written: {why}", file=str(path), fix=fix)


def _read(path: Path) -> bytes | None:
    """Return the content of a file; None if there is none."""
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError as error:
        raise FleetError(_build_error("read", path, error)) from None


def _save(folder: Path, name: str) -> None:
    """Copy an edited file; the checksum in the name of the copy keeps earlier copies."""
    content = _read(folder / name) or b""
    _write(folder / EDITED / ".gitignore", "*\n")
    _write_bytes(folder / EDITED / f"{name}.{checksum(content)[:8]}", content)


def _remove(folder: Path, name: str) -> None:
    """Remove a file, and the folders that are empty without it."""
    path = folder / name
    try:
        path.unlink()
    except OSError as error:
        raise FleetError(_build_error("removed", path, error)) from None
    with suppress(OSError):
        for parent in list(path.relative_to(folder).parents)[:-1]:
            (folder / parent).rmdir()


def _write(path: Path, text: str) -> None:
    _write_bytes(path, text.encode())


def _write_bytes(path: Path, content: bytes) -> None:
    """Write a temporary file and rename it, so that a file is never incomplete, even on a full disk."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)
        temporary.touch(exist_ok=False)  # never through a link of this name
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise FleetError(_build_error("written", path, error)) from None


def _build_error(what: str, path: Path, error: OSError) -> Problem:
    fix = Fix(command="rayhelm render FLEET -o FOLDER", why="a folder that you may write to, on a disk with free space")
    why = str(error.strerror)
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        why = "a file has the name of a folder that is needed"
    return Problem(f"cannot be {what}: {why}", file=str(path), fix=fix)
