"""Build an image of one static program."""

from collections.abc import Sequence
from pathlib import Path

from testbed.images.layout import Layout
from testbed.images.tar import Stream

__all__ = ["of_program"]

NOBODY = 65532
"""User of the image, as in distroless images."""


def of_program(layout: Layout, tag: str, path: Path, arguments: Sequence[str] = ()) -> None:
    """Build the image if it is missing; the program is its entrypoint."""
    about = path.stat()
    parts = f"{path} {about.st_size} {about.st_mtime_ns} {' '.join(arguments)}"
    if layout.is_made_of(tag, parts):
        return
    config = [f"--config.entrypoint=/{path.name}", f"--config.user={NOBODY}:{NOBODY}", "--config.workingdir=/"]
    words = [f"--config.cmd={word}" for word in arguments]
    layout.make(tag, parts, layer=Stream(path.parent, [f"./{path.name}"]), config=[*config, *words])
