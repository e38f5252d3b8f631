"""The layer of Redis, for GCS fault tolerance: Debian packages, unpacked on top of the base image."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from rayhelm.errors import RayhelmError
from testbed.images.base import SUITE, UNREAD, debootstrap
from testbed.images.layout import Layout
from testbed.images.tar import Stream

__all__ = ["make_redis"]


def make_redis(layout: Layout, tag: str, base: str, packages: Sequence[str], folder: Path) -> None:
    """Build the image if it is missing. No install script of a package runs. Redis runs as the user of the base image,
    in a folder that it writes only if it is configured to save."""
    parts = f"{layout.digest(base)} {SUITE} {' '.join(packages)}"
    if layout.is_made_of(tag, parts):
        return
    debian, files = folder / "debian", folder / "files"
    debootstrap(packages, debian, "--download-only")
    for package in packages:
        (archive,) = (debian / "var/cache/apt/archives").glob(f"{package}_*.deb")
        _unpack(archive, files)
    # Only /usr: a folder /lib would hide the link /lib of the base image.
    layout.make(
        tag, parts, base=base, layer=Stream(files, ["./usr"], left_out=UNREAD), config=["--config.cmd=redis-server"]
    )
    shutil.rmtree(folder)


def _unpack(archive: Path, into: Path) -> None:
    answer = subprocess.run(
        ["dpkg-deb", "--extract", str(archive), str(into)], capture_output=True, text=True, check=False
    )
    if answer.returncode:
        raise RayhelmError(f"{archive.name} could not be unpacked: {answer.stderr.strip()}")
