"""Stop a node and remove everything that it created."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from rayhelm import processes
from rayhelm.errors import RayhelmError
from testbed.control_plane.lock import alone
from testbed.control_plane.running import run_of
from testbed.node import cgroups
from testbed.node.home import NodeHome
from testbed.node.namespace import INIT, unplug
from testbed.node.running import ORDER

__all__ = ["alive", "clear", "down", "left_behind"]

PARTS = (INIT, "kubectl", *reversed(ORDER))
"""Parts in the order of the stop. The first one is the init process, whose end stops all processes in the namespaces;
the others are stopped too, in case it was killed."""


def down(home: NodeHome, say: Callable[[str], None] = lambda line: None, *, keep_images: bool = False) -> int:
    """Stop all processes, remove everything that the node created on this computer, and return the number of processes.
    This also works if some processes have died or the folder is missing. `keep_images` keeps the images for the next
    node."""
    with alone(home, say):
        ended = clear(home, say, keep_images=keep_images)
        if not keep_images and home.kept.exists():
            shutil.rmtree(home.kept)
        return ended


def clear(
    home: NodeHome, say: Callable[[str], None] = lambda line: None, *, keep_images: bool = False, logs: bool = False
) -> int:
    """Remove the node. `logs` keeps the logs, to show why a node did not start."""
    if keep_images:
        _wait_for_deletions(home)
    ended = _end_all(home)
    unplug(home)
    cgroups.remove(home.cgroup, _read_enabled_controllers(home))
    if mounts := mounted_below(home.folder):
        raise RayhelmError(f"{mounts[0]} is still mounted: run umount, then `ci/node down`")
    if keep_images and (home.lib / "containerd").exists():
        if home.kept.exists():
            shutil.rmtree(home.kept)
        (home.lib / "containerd").rename(home.kept)
    if logs:
        for path in home.folder.iterdir() if home.folder.is_dir() else ():
            if path.name != "logs":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    else:
        home.remove()
    return ended


def alive(home: NodeHome) -> int:
    """Count the processes with the mark of a node or in its cgroups, with or without its folder."""
    return sum(len(processes.list_members(run_of(home, part))) for part in PARTS) + len(cgroups.pids(home.cgroup))


def left_behind(home: NodeHome) -> list[str]:
    """Return the remains of a node that `down` removes."""
    cgroup = [str(tree / home.cgroup) for tree in cgroups.trees() if (tree / home.cgroup).exists()]
    cable = Path("/sys/class/net", home.cable)
    files = [str(path) for path in (cable, home.folder) if path.exists()]
    return [*cgroup, *files, *mounted_below(home.folder)]


def mounted_below(folder: Path) -> list[str]:
    """Return the mount points below a folder in the host's mount namespace."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    places = [line.split()[4].replace("\\040", " ") for line in lines]
    return [place for place in places if Path(place).is_relative_to(folder)]


def _wait_for_deletions(home: NodeHome) -> None:
    """Stop kubelet and containerd first, so that they finish writing images."""
    for part in ("kubelet", "containerd"):
        processes.stop_run(run_of(home, part), grace=5)


def _end_all(home: NodeHome) -> int:
    """Stop all processes and return their number. Raises RayhelmError if one cannot be stopped."""
    try:
        count = alive(home)
        for part in PARTS:
            processes.stop_run(run_of(home, part), grace=0)
        return count
    except RuntimeError as error:
        raise RayhelmError(str(error)) from None


def _read_enabled_controllers(home: NodeHome) -> list[str]:
    try:
        found: list[str] = json.loads((home.folder / "switched.json").read_text())
    except (OSError, ValueError):
        return []
    return found
