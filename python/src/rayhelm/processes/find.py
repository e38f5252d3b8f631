"""Finds processes: those of a run, and whoever listens on a port."""

import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from rayhelm.processes.mark import marked

__all__ = ["Listener", "free_port", "listener", "members", "memory_held", "shared_memory"]

SHARED = Path("/dev/shm")


def members(run: str) -> list[psutil.Process]:
    """Every process of a run: those that carry its mark, and their descendants, should one have dropped it."""
    found = {process.pid: process for process in marked(run)}
    for process in list(found.values()):
        try:
            found.update({child.pid: child for child in process.children(recursive=True)})
        except psutil.Error:
            continue
    found.pop(os.getpid(), None)
    return list(found.values())


def memory_held(processes: list[psutil.Process]) -> int:
    """Bytes that processes hold together: pages that they share are counted once (proportional set size)."""
    held = 0
    for process in processes:
        try:
            held += process.memory_full_info().pss
        except (psutil.Error, OSError):
            continue
    return held


def shared_memory(processes: Iterable[psutil.Process]) -> set[Path]:
    """Python's own shared memory blocks and semaphores that processes have open: files with random names, known to one
    family of processes only, that stay in memory when the last of it is killed."""
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
    """Who listens on a port."""

    port: int
    pid: int | None
    """None where the process belongs to another user."""
    command: str

    def __str__(self) -> str:
        return f"{self.command} (pid {self.pid})" if self.pid else "a process of another user"


def listener(port: int) -> Listener | None:
    """The process that listens on a TCP port of this computer, or None when the port is free."""
    for connection in psutil.net_connections(kind="tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port:
            return Listener(port, connection.pid, _command(connection.pid))
    return None if _can_bind(port) else Listener(port, None, "")


def free_port(taken: set[int]) -> int:
    """A port that nobody listens on now, outside `taken`, to which it is added."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port not in taken:
            taken.add(port)
            return port


def _command(pid: int | None) -> str:
    if pid is None:
        return ""
    try:
        words = psutil.Process(pid).cmdline()
    except psutil.Error:
        return ""
    text = " ".join(words)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
