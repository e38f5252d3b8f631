"""Free ports on loopback, outside the range that the kernel takes for outgoing connections.

A part that is started again has the port it had. Were that port of the kernel's own range, a client that knocks while
nobody listens could be given it as its own end, and be connected to itself.
"""

import random
import socket
from pathlib import Path

from rayhelm.errors import MissingError

__all__ = ["free_port"]

LOWEST = 20_000
HIGHEST = 32_767
"""Linux starts its own range behind that, unless it is told otherwise."""
KERNELS = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port(taken: set[int]) -> int:
    """A port that nobody listens on now, outside `taken`, to which it is added. Raises MissingError without any."""
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
