"""Free ports on loopback, outside the range that the kernel takes for outgoing connections.

A restarted part keeps its port. If that port were in the kernel's range, a client that connects while the part is down
could get it as its own source port and connect to itself.
"""

import random
import socket
from pathlib import Path

from rayhelm.errors import MissingError

__all__ = ["free_port"]

LOWEST = 20_000
HIGHEST = 32_767
"""Linux starts its own range above that by default."""
KERNELS = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port(taken: set[int]) -> int:
    """Find a port without a listener, outside `taken`, and add it there. Raises MissingError without any."""
    kernels = _kernels()
    ports = [port for port in range(LOWEST, HIGHEST + 1) if port not in taken and port not in kernels]
    random.shuffle(ports)
    for port in ports:
        if _is_free(port):
            taken.add(port)
            return port
    raise MissingError(f"no port from {LOWEST} to {HIGHEST} is free on loopback", "end what listens there")


def _kernels() -> range:
    try:
        lowest, highest = map(int, KERNELS.read_text().split())
    except (OSError, ValueError):
        return range(0)
    # Who widened the range over all of ours has to live with it.
    return range(lowest, highest + 1) if lowest > LOWEST + 1000 else range(0)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
