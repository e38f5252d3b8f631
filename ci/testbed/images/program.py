"""An image of one static program and nothing else."""

import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from testbed.images.layout import Layout

__all__ = ["of_program"]

NOBODY = 65532
"""The user; images of this kind are made for it since distroless ones were."""


def of_program(layout: Layout, tag: str, path: Path, arguments: Sequence[str] = ()) -> None:
    """Makes it, where it is not there yet: the program is its entrypoint."""
    about = path.stat()
    parts = f"{path} {about.st_size} {about.st_mtime_ns} {' '.join(arguments)}"
    if layout.is_made_of(tag, parts):
        return
    config = [f"--config.entrypoint=/{path.name}", f"--config.user={NOBODY}:{NOBODY}", "--config.workingdir=/"]
    with tempfile.TemporaryDirectory() as folder:
        layer = Path(folder, "layer.tar")
        with tarfile.open(layer, "w") as tar:
            tar.add(path, path.name, filter=_of_root)
        layout.make(tag, parts, layers=[layer], config=[*config, *(f"--config.cmd={word}" for word in arguments)])


def _of_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode = 0o755
    return entry
