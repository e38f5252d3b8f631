"""Free ports on loopback, outside the range that the kernel takes for outgoing connections and for port 0.

A port is used seconds after it was chosen, and a restarted process keeps its port. If the port were in the kernel's
range, a process that connects or asks for any port could get it meanwhile. Two commands that choose at the same time
must not get the same port either: on Linux, each chosen port is claimed until its process ends.
"""

import os
import random
import socket
import sys
from collections import deque
from pathlib import Path

from rayhelm.errors import MissingError

__all__ = ["find_free_port"]

LOWEST = 20_000
HIGHEST = 32_767
"""Highest port; the default range of Linux is above it."""
KERNEL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_MAX_CLAIMS = 64
"""Claims that a process keeps. The oldest are given up: by then a server listens on their ports."""
_claims: deque[int] = deque()
"""File descriptors. They are not inherited by programs that this process starts."""


def find_free_port(taken: set[int]) -> int:
    """Return a port that is free now and not in `taken`, and add it to `taken`. Raises MissingError without one."""
    kernel = _read_kernel_range()
    ports = [port for port in range(LOWEST, HIGHEST + 1) if port not in taken and port not in kernel]
    random.shuffle(ports)
    for port in ports:
        if _is_free(port) and _claim(port):
            taken.add(port)
            return port
    raise MissingError(f"no port from {LOWEST} to {HIGHEST} is free on loopback", "stop what listens there")


def _read_kernel_range() -> range:
    try:
        lowest, highest = map(int, KERNEL_RANGE.read_text().split())
    except (OSError, ValueError):
        return range(0)
    # If the kernel's range covers nearly all of these ports, they are used anyway.
    return range(lowest, highest + 1) if lowest > LOWEST + 1000 else range(0)


def _claim(port: int) -> bool:
    """Claim a port among processes of rayhelm by the name of a socket that has no file. Return False if one has it."""
    if sys.platform != "linux":
        return True
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        claim.bind(f"\0rayhelm-port-{port}")
    except OSError:
        claim.close()
        return False
    _claims.append(claim.detach())
    if len(_claims) > _MAX_CLAIMS:
        os.close(_claims.popleft())
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
