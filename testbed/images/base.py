"""The lowest layer: a small Debian with Python, bash and wget, and a user for Ray."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from rayhelm.errors import MissingError, RayhelmError
from testbed.images.layout import Layout
from testbed.images.tar import Stream

__all__ = ["PYTHON", "SUITE", "UNREAD", "USER", "debootstrap", "make_base", "packages_of"]

SUITE = "bookworm"
PYTHON = "3.11"
"""Minor version of Python in that suite of Debian."""
USER = 1000

# Documentation is not needed in a container.
UNREAD = tuple(f"usr/share/{name}/*" for name in ("doc", "man", "info", "locale", "lintian"))
LEFT_OUT = (*UNREAD, "var/cache/apt/*", "var/lib/apt/lists/*", "var/log/*", "dev/*", "proc/*", "sys/*", "run/*")


def packages_of(recipe: Path) -> list[str]:
    lines = (line.strip() for line in recipe.read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def make_base(layout: Layout, tag: str, packages: Sequence[str], folder: Path) -> None:
    """Build the image if it is missing; `folder` holds its files during the build. Raises MissingError."""
    parts = f"{SUITE} {' '.join(packages)}"
    if layout.is_made_of(tag, parts):
        return
    debootstrap(packages, folder)
    _furnish(folder)
    config = [f"--config.user={USER}:{USER}", "--config.workingdir=/home/ray", "--config.cmd=bash"]
    environment = {"PATH": "/opt/venv/bin:/usr/local/bin:/usr/bin:/bin", "HOME": "/home/ray", "LANG": "C.UTF-8"}
    variables = [f"--config.env={name}={value}" for name, value in environment.items()]
    layout.make(tag, parts, layer=Stream(folder, ["."], left_out=LEFT_OUT), config=[*config, *variables])
    shutil.rmtree(folder)


def debootstrap(packages: Sequence[str], folder: Path, *options: str) -> None:
    """Install a minimal Debian with these packages into a new folder."""
    if shutil.which("debootstrap") is None:
        raise MissingError("debootstrap is not installed: it builds the base image", "apt-get install debootstrap")
    if folder.exists():
        shutil.rmtree(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    command = ["debootstrap", "--variant=minbase", *options, f"--include={','.join(packages)}", SUITE, str(folder)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        said = "\n".join((answer.stdout + answer.stderr).strip().splitlines()[-5:])
        raise RayhelmError(f"debootstrap failed:\n{said}\n    it needs root and access to a Debian mirror")


def _furnish(folder: Path) -> None:
    for name, line in (("passwd", f"ray:x:{USER}:{USER}::/home/ray:/bin/bash"), ("group", f"ray:x:{USER}:")):
        with (folder / "etc" / name).open("a") as file:
            file.write(f"{line}\n")
    home = folder / "home" / "ray"
    home.mkdir()
    home.chmod(0o777)
    venv = folder / "opt" / "venv"
    packages = venv / "lib" / f"python{PYTHON}" / "site-packages"
    packages.mkdir(parents=True)
    (venv / "bin").mkdir()
    for name in ("python", "python3", f"python{PYTHON}"):
        (venv / "bin" / name).symlink_to("/usr/bin/python3")
    (venv / "pyvenv.cfg").write_text(f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {PYTHON}\n")
