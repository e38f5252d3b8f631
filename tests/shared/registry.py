"""A real OCI registry on loopback."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

import testbed.tools
from rayhelm import __version__
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.processes import create_run_id, start, stop_run, wait_until
from shared.built import built_program
from shared.ports import reserve_port

__all__ = ["package_charts", "publish", "serve_registry"]

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def serve_registry(home: Path, *, login: bool = False) -> Iterator[str]:
    """Yield `127.0.0.1:PORT` of a registry that keeps its content in `home`. Skips the test where it is not built."""
    registry = built_program("registry")
    run = create_run_id()
    with reserve_port() as port:
        settings: dict[str, object] = {
            "version": "0.1",
            "storage": {"filesystem": {"rootdirectory": str(home / "content")}},
            "http": {"addr": f"127.0.0.1:{port}"},
        }
        if login:  # the registry makes the file, with a password that it writes into its log
            settings["auth"] = {"htpasswd": {"realm": "test", "path": str(home / "htpasswd")}}
        (home / "registry.json").write_text(json.dumps(settings))
        try:
            process = start([str(registry), "serve", str(home / "registry.json")], run=run, log=home / "log")
            wait_until(lambda: _is_ready(port), what="the registry", timeout=300, needs=[process])
            yield f"127.0.0.1:{port}"
        finally:
            stop_run(run)


def package_charts(folder: Path) -> None:
    """Write the packages of a release into `folder`, as the release workflow does."""
    command = [charts_dir().parent / "ci/release", f"v{__version__}", folder]
    subprocess.run(command, check=True, capture_output=True)


def publish(folder: Path, registry: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ci/publish, as the release workflow does."""
    path = [str(testbed.tools.program("helm").parent), str(ROOT / ".tools/uv/bin"), os.environ["PATH"]]
    given = {"REGISTRY": registry, "PLAIN_HTTP": "1", "PATH": ":".join(path)}
    return subprocess.run(
        [ROOT / "ci/publish", folder],
        env=os.environ | given | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def _is_ready(port: int) -> bool | None:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/v2/", trust_env=False).status_code in {200, 401} or None
    except httpx.TransportError:
        return None
