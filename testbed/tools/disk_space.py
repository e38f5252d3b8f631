"""Check the free disk space for a build."""

import json
import os
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

from rayhelm.errors import MissingError
from testbed.tools.catalog import Module
from testbed.tools.checkout import Checkout
from testbed.tools.toolchain import environment

__all__ = ["check_disk_space", "free_mib"]


def check_disk_space(module: Module, go: Path, checkout: Checkout) -> None:
    """Raise MissingError if a disk has less free space than a build with empty caches needs."""
    disk = module.recipe.disk
    cache, modules = _find_go_folders(go, checkout)
    needs: defaultdict[int, int] = defaultdict(int)
    folders: defaultdict[int, list[str]] = defaultdict(list)
    for folder, need in ((modules, disk.modules), (cache, disk.cache), (checkout.store, disk.programs)):
        device = _find_existing(folder).stat().st_dev
        needs[device] += need
        folders[device].append(str(folder))
    for device, need in needs.items():
        free = free_mib(_find_existing(Path(folders[device][0])))
        if free < need:
            raise MissingError(
                f"{module.name} {module.version} needs up to {need} MiB on the disk of {', '.join(folders[device])}: "
                f"{free} MiB are free",
                "free disk space (`go clean -cache`), or set GOCACHE and GOMODCACHE to folders on a larger disk; "
                "then: make tools",
            )


def free_mib(folder: Path) -> int:
    """Return the free disk space, MiB."""
    return shutil.disk_usage(folder).free >> 20


def _find_go_folders(go: Path, checkout: Checkout) -> tuple[Path, Path]:
    """Return the folders of Go's build cache and module cache."""
    answer = subprocess.run(
        [go, "env", "-json", "GOCACHE", "GOMODCACHE"],
        env=environment(checkout), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if answer.returncode:
        raise MissingError(f"{go} env: {answer.stderr.strip()}", "set HOME or GOCACHE and GOPATH")
    folders = json.loads(answer.stdout)
    return Path(folders["GOCACHE"]), Path(folders["GOMODCACHE"])


def _find_existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder if os.access(folder, os.R_OK) else folder.parent
