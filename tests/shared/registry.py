"""A real OCI registry on loopback."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from rayhelm import __version__
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.processes import create_run_id, start, stop_run, wait_until
from shared.built import built_program
from shared.ports import reserve_port

__all__ = ["package_charts", "push", "serve_registry"]


@contextmanager
def serve_registry(home: Path) -> Iterator[str]:
    """Yield `127.0.0.1:PORT` of a registry that keeps its content in `home`. Skips the test where it is not built."""
    registry = built_program("registry")
    run = create_run_id()
    with reserve_port() as port:
        settings = {
            "version": "0.1",
            "storage": {"filesystem": {"rootdirectory": str(home / "content")}},
            "http": {"addr": f"127.0.0.1:{port}"},
        }
        (home / "registry.json").write_text(json.dumps(settings))
        try:
            process = start([str(registry), "serve", str(home / "registry.json")], run=run, log=home / "log")
            wait_until(lambda: _is_ready(port), what="the registry", timeout=300, needs=[process])
            yield f"127.0.0.1:{port}"
        finally:
            stop_run(run)


def package_charts(folder: Path, **environment: str) -> None:
    """Write the packages of a release into `folder`, as the release workflow does."""
    command = [charts_dir().parent / "ci/release", f"v{__version__}", folder]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})


def push(helm: Path, folder: Path, registry: str) -> None:
    """Push the packages of `folder`, each with its provenance file if there is one."""
    for package in sorted(folder.glob("*.tgz")):
        command = [helm, "push", package, f"oci://{registry}/charts", "--plain-http"]
        subprocess.run(command, check=True, capture_output=True)


def _is_ready(port: int) -> bool | None:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/v2/", trust_env=False).is_success or None
    except httpx.TransportError:
        return None
