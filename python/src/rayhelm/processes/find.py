"""Find processes: those of a run, and the one that listens on a port."""

import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from rayhelm.processes.mark import has_ended, list_marked

__all__ = [
    "Listener",
    "find_listener",
    "list_members",
    "list_shared_memory",
    "measure_memory",
    "read_command",
]

SHARED = Path("/dev/shm")


def list_members(run: str) -> list[psutil.Process]:
    """Return every process of a run: those with its mark, and their descendants in case one has dropped it."""
    found = {process.pid: process for process in list_marked(run)}
    for process in list(found.values()):
        try:
            children = process.children(recursive=True)
            found.update({child.pid: child for child in children if not has_ended(child)})
        except psutil.Error:
            continue
    found.pop(os.getpid(), None)
    return list(found.values())


def measure_memory(processes: list[psutil.Process]) -> int:
    """Return the memory of processes together, in bytes; shared pages count once (proportional set size)."""
    held = 0
    for process in processes:
        try:
            held += process.memory_full_info().pss
        except (psutil.Error, OSError):
            continue
    return held


def list_shared_memory(processes: Iterable[psutil.Process]) -> set[Path]:
    """Return the shared memory blocks and semaphores of Python that processes have open.

    They are files with random names in /dev/shm. They stay in memory when the last process that knows them is killed.
    """
    found: set[Path] = set()
    for process in processes:
        try:
            paths = [Path(region.path) for region in process.memory_maps()]
        except (psutil.Error, OSError):
            continue
        found.update(path for path in paths if path.parent == SHARED and path.name.startswith(("psm_", "sem.mp-")))
    return found


@dataclass(frozen=True)
class Listener:
    """The process that listens on a port."""

    port: int
    pid: int | None
    """None if the process belongs to another user."""
    command: str

    def __str__(self) -> str:
        return f"{self.command} (pid {self.pid})" if self.pid else "a process of another user"


def find_listener(port: int) -> Listener | None:
    """Return the process that listens on a TCP port of this computer, or None if the port is free."""
    for connection in psutil.net_connections(kind="tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port:
            return Listener(port, connection.pid, _describe(connection.pid))
    return None if _can_bind(port) else Listener(port, None, "")


def read_command(process: psutil.Process) -> list[str]:
    """Return the command line of a process; empty if the process has ended, even a moment ago."""
    try:
        return list(process.cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied):  # ZombieProcess is a NoSuchProcess
        return []


def _describe(pid: int | None) -> str:
    if pid is None:
        return ""
    try:
        text = " ".join(read_command(psutil.Process(pid)))
    except psutil.Error:
        return ""
    return text if len(text) <= 80 else f"{text[:77]}..."


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
