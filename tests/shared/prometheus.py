"""A real Prometheus over samples that a test writes down."""

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from rayhelm.errors import MissingError
from rayhelm.processes import create_run_id, start, stop_run, wait_until
from shared.ports import reserve_port
from testbed.tools import program

__all__ = ["serve_samples"]


@contextmanager
def serve_samples(home: Path, samples: Iterable[str]) -> Iterator[str]:
    """Yield the URL of a Prometheus with these samples, each a line `name{label="value"} number seconds`. Skips the
    test where Prometheus is not built."""
    try:
        server, promtool = program("prometheus"), program("promtool")
    except MissingError as error:
        pytest.skip(f"no promtool: {error.how.splitlines()[0]} builds it")
    by_name = sorted(samples, key=lambda line: line.partition("{")[0])
    (home / "series").write_text("\n".join([*by_name, "# EOF", ""]))
    making = [promtool, "tsdb", "create-blocks-from", "openmetrics", home / "series", home / "data"]
    subprocess.run(making, check=True, capture_output=True)
    (home / "prometheus.yaml").write_text("{}")
    run = create_run_id()
    with reserve_port() as port:
        command = [
            str(server),
            f"--config.file={home}/prometheus.yaml",
            f"--storage.tsdb.path={home}/data",
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        url = f"http://127.0.0.1:{port}"
        try:
            process = start(command, run=run, log=home / "log")
            wait_until(lambda: _is_ready(url), what="Prometheus", timeout=300, needs=[process])
            yield url
        finally:
            stop_run(run)


def _is_ready(url: str) -> bool | None:
    try:
        return httpx.get(f"{url}/-/ready", trust_env=False).is_success or None
    except httpx.TransportError:
        return None
