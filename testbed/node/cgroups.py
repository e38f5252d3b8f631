"""The cgroups of a node's pods, in version 1 (a tree for each controller) and in version 2 (one for all)."""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from rayhelm.errors import RayhelmError

__all__ = ["NEEDED", "ROOT", "closed", "lacking", "make", "pids", "remove", "trees"]

ROOT = Path("/sys/fs/cgroup")
NEEDED = ("cpu", "cpuset", "memory", "pids")
"""Controllers that the kubelet will not start without."""


def is_unified(root: Path = ROOT) -> bool:
    """Return whether only cgroup version 2 is mounted."""
    return (root / "cgroup.controllers").exists()


def trees(root: Path = ROOT) -> list[Path]:
    """Return the root of each hierarchy."""
    if is_unified(root):
        return [root]
    # If two controllers share a tree (cpu,cpuacct), each also has a link to it.
    folders = [path for path in sorted(root.iterdir()) if path.is_dir() and not path.is_symlink()]
    return [path for path in folders if (path / "cgroup.procs").exists()]


def lacking(root: Path = ROOT) -> list[str]:
    """Return the needed controllers that the kernel lacks or does not delegate."""
    if is_unified(root):
        there = set((root / "cgroup.controllers").read_text().split())
    else:
        there = {name for name in NEEDED if (root / name / "cgroup.procs").exists()}
    return [name for name in NEEDED if name not in there]


def closed(root: Path = ROOT) -> str:
    """Return why no cgroup with these controllers can be created (common in containers); empty if one can."""
    if shut := [str(tree) for tree in trees(root) if not os.access(tree, os.W_OK)]:
        return f"{shut[0]} cannot be written"
    # Only the root cgroup of the kernel may have processes and delegate controllers.
    inner = (root / "cgroup.type").exists()
    if is_unified(root) and inner and _list_disabled_controllers(root) and (root / "cgroup.procs").read_text().strip():
        return f"{root} is the cgroup of a container and has its processes"
    return ""


def make(name: str, root: Path = ROOT) -> list[str]:
    """Create a cgroup in each hierarchy, and return the controllers that were enabled for it (version 2)."""
    switched: list[str] = []
    if is_unified(root):
        switched = _enable_controllers(root)
    for tree in trees(root):
        folder = tree / name
        folder.mkdir(exist_ok=True)
        for setting in ("cpuset.cpus", "cpuset.mems"):
            # In version 1, a new cgroup has no CPUs and memory nodes, so no process could run in it.
            if (folder / setting).exists() and not is_unified(root):
                (folder / setting).write_text((tree / setting).read_text())
    return switched


def pids(name: str, root: Path = ROOT) -> set[int]:
    """Return the processes in a cgroup and its children."""
    found: set[int] = set()
    for tree in trees(root):
        for procs in (tree / name).rglob("cgroup.procs"):
            try:
                found.update(map(int, procs.read_text().split()))
            except OSError:
                continue
    return found - {0}


def remove(name: str, switched: Sequence[str] = (), root: Path = ROOT) -> None:
    """Kill the processes in a cgroup and remove it from each hierarchy. `switched`: controllers to disable again."""
    for _ in range(50):
        if not (alive := pids(name, root)):
            break
        for pid in alive:
            _kill(pid)
        time.sleep(0.1)
    for tree in trees(root):
        for folder in _list_deepest_first(tree / name):
            _remove_folder(folder)
    if switched and is_unified(root):
        for controller in switched:
            with suppress(OSError):  # another process uses the controller now
                (root / "cgroup.subtree_control").write_text(f"-{controller}")


def _enable_controllers(root: Path) -> list[str]:
    if off := _list_disabled_controllers(root):
        (root / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in off))
    return off


def _list_disabled_controllers(root: Path) -> list[str]:
    """Return controllers that are not delegated to child cgroups."""
    on = (root / "cgroup.subtree_control").read_text().split()
    return [name for name in NEEDED if name not in on]


def _list_deepest_first(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        return
    below = [path for path in folder.rglob("*") if path.is_dir()]
    yield from sorted(below, key=lambda path: len(path.parts), reverse=True)
    yield folder


def _remove_folder(folder: Path) -> None:
    """Remove a cgroup. It stays busy for a moment after its last process has ended."""
    for _ in range(50):
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RayhelmError(f"{folder} cannot be removed: processes are still in it")


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
