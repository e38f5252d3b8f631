"""End a node; nothing of it stays."""

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
"""The end of the first one is at once the end of everything in its namespaces; the rest is looked for all the same,
should it have been killed."""


def down(home: NodeHome, say: Callable[[str], None] = lambda line: None, *, keep_images: bool = False) -> int:
    """End all processes, and removes what it had on this computer, also of a node that is half dead or whose folder is
    gone; says how many processes there were. Images may be kept for the next one."""
    with alone(home, say):
        ended = clear(home, say, keep_images=keep_images)
        if not keep_images and home.kept.exists():
            shutil.rmtree(home.kept)
        return ended


def clear(
    home: NodeHome, say: Callable[[str], None] = lambda line: None, *, keep_images: bool = False, logs: bool = False
) -> int:
    """`logs` keeps the logs, to show why a node did not start."""
    if keep_images:
        _wait_for_deletions(home)
    ended = _end_all(home)
    unplug(home)
    cgroups.remove(home.cgroup, _switched(home))
    if mounts := mounted_below(home.folder):
        raise RayhelmError(f"{mounts[0]} is still mounted: umount it; then `ci/node down`")
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
    """Return the processes that carry the marks of a node or live in its cgroups, whatever its folder says."""
    return sum(len(processes.list_members(run_of(home, part))) for part in PARTS) + len(cgroups.pids(home.cgroup))


def left_behind(home: NodeHome) -> list[str]:
    """What of a node is there, of all that `down` takes away."""
    cgroup = [str(tree / home.cgroup) for tree in cgroups.trees() if (tree / home.cgroup).exists()]
    cable = Path("/sys/class/net", home.cable)
    files = [str(path) for path in (cable, home.folder) if path.exists()]
    return [*cgroup, *files, *mounted_below(home.folder)]


def mounted_below(folder: Path) -> list[str]:
    """Return where something is mounted in the host's own tree."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    places = [line.split()[4].replace("\\040", " ") for line in lines]
    return [place for place in places if Path(place).is_relative_to(folder)]


def _wait_for_deletions(home: NodeHome) -> None:
    """What is being written of images comes to its end."""
    for part in ("kubelet", "containerd"):
        processes.stop_run(run_of(home, part), grace=5)


def _end_all(home: NodeHome) -> int:
    """Raises RayhelmError where something cannot be ended."""
    try:
        count = alive(home)
        for part in PARTS:
            processes.stop_run(run_of(home, part), grace=0)
        return count
    except RuntimeError as error:
        raise RayhelmError(str(error)) from None


def _switched(home: NodeHome) -> list[str]:
    try:
        found: list[str] = json.loads((home.folder / "switched.json").read_text())
    except (OSError, ValueError):
        return []
    return found
