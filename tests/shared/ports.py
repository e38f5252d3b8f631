"""A port that stays reserved until a server binds it, and after."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["reserve_port"]


@contextmanager
def reserve_port() -> Iterator[int]:
    """Yield a port of 127.0.0.1 that refuses connections until a server with SO_REUSEADDR listens on it.

    The reservation is a bound socket that does not listen. Meanwhile the kernel gives the port to no other process, so
    it can neither be lost before the server starts nor while the server is restarted.
    """
    with socket.socket() as reservation:
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reservation.bind(("127.0.0.1", 0))
        yield int(reservation.getsockname()[1])
