"""`.rayhelm-files.json`: the files that `rayhelm render` wrote into a folder, with the SHA-256 of each.

Render removes only files that are listed there and that still have that checksum. `rayhelm rules` and `rayhelm
dashboards` keep lists of their own.
"""

import json
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path, PurePosixPath

from rayhelm.errors import Fix, FleetError, Problem

__all__ = ["MANIFEST", "FolderManifest", "checksum", "manifest_text", "read_manifest"]

MANIFEST = ".rayhelm-files.json"
_COMMENT = "Written by `{command}`: the files that it wrote here. Commit it; do not edit it."


@dataclass(frozen=True)
class FolderManifest:
    """Files that an earlier render wrote into a folder."""

    fleet: str = ""
    """Name of the fleet; empty without a manifest."""
    source: str = ""
    """Name of the fleet file if it is in the folder itself, else empty."""
    files: dict[str, str] = field(default_factory=dict)
    """SHA-256 by path below the folder."""


def checksum(content: bytes) -> str:
    return sha256(content).hexdigest()


def manifest_text(manifest: FolderManifest, command: str = "rayhelm render") -> str:
    """Return the text of a manifest: sorted, without times or absolute paths, so equal manifests have equal texts."""
    ordered = dict(sorted(manifest.files.items()))
    comment = _COMMENT.format(command=command)
    data = {"comment": comment, "fleet": manifest.fleet, "source": manifest.source, "files": ordered}
    return json.dumps(data, indent=2) + "\n"


def read_manifest(folder: Path, name: str = MANIFEST) -> FolderManifest:
    """Return the manifest of `folder`; an empty one if the file does not exist. Raises FleetError."""
    path = folder / name
    try:
        data = json.loads(path.read_bytes()) if path.is_file() else {}
    except OSError as error:
        raise FleetError(Problem(f"cannot be read: {error.strerror}", file=str(path))) from None
    except ValueError:
        raise FleetError(_build_manifest_problem(path, "it is not JSON")) from None
    files = data.get("files", {}) if isinstance(data, dict) else None
    texts = [data.get("fleet", ""), data.get("source", "")] if isinstance(data, dict) else []
    if not isinstance(files, dict) or not all(isinstance(text, str) for text in (*texts, *files.values())):
        raise FleetError(_build_manifest_problem(path, "it has other keys or types"))
    if outside := next((name for name in files if not _is_below(name)), None):
        raise FleetError(_build_manifest_problem(path, f"`{outside}` is not a path below its folder"))
    fleet, source = texts
    return FolderManifest(fleet, source, files)


def _is_below(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return bool(parts) and not name.startswith("/") and ".." not in parts


def _build_manifest_problem(path: Path, why: str) -> Problem:
    message = f"is not a list of files that rayhelm wrote: {why} (a merge conflict?)"
    fix = Fix(
        command=f"git checkout HEAD -- {path}", why="or remove the file: then nothing old is removed from the folder"
    )
    return Problem(message, file=str(path), fix=fix)
