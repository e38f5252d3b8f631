"""A real Python index on loopback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from rayhelm.processes import create_run_id, start, stop_run, wait_until
from shared.ports import reserve_port

__all__ = ["serve_index"]


@contextmanager
def serve_index(packages: Path) -> Iterator[str]:
    """Yield the URL of an index of the files in `packages`, which takes uploads from all clients, and none twice."""
    run = create_run_id()
    packages.mkdir(exist_ok=True)
    with reserve_port() as port:
        options = ["--disable-fallback", "--authenticate=.", "--passwords=.", f"--port={port}", "--interface=127.0.0.1"]
        command = [sys.executable, "-m", "pypiserver", "run", *options, str(packages)]
        try:
            process = start(command, run=run, log=packages.with_name("index.log"))
            wait_until(lambda: _is_ready(port), what="the Python index", timeout=300, needs=[process])
            yield f"http://127.0.0.1:{port}"
        finally:
            stop_run(run)


def _is_ready(port: int) -> bool | None:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).is_success or None
    except httpx.TransportError:
        return None
