"""Serves a serveConfigV2 on this computer, in a Ray of its own, and ends it again."""

import secrets
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from rayhelm import processes
from rayhelm.errors import RayhelmError
from rayhelm.local import gateway as gateways
from rayhelm.local import ray_cluster
from rayhelm.local.client import ServeApi, Status, one_token
from rayhelm.local.config import listening
from rayhelm.local.gateway import Door
from rayhelm.local.state import Endpoint, Home, Served
from rayhelm.processes import Process

__all__ = ["Failed", "Watch", "down", "running", "up"]

START = 180.0
"""Seconds that Ray may take."""
DEPLOY = 1800.0
"""Seconds that the applications may take: real weights may have to be fetched."""
IDLE_SLOTS = 4
"""Logical CPUs beyond those of replicas: Serve's controller, proxies, and what the replicas start."""

WORKER_DIED = "SYSTEM_ERROR"
"""How Ray calls the end of a worker that nobody asked for."""

Watch = Callable[[str], None]
"""Is told what is being waited for, in words; the same words again mean that nothing has changed."""


class Failed(RayhelmError):
    """The endpoint did not come up. What was started has been ended."""


@dataclass(frozen=True)
class _Ray:
    head: Process
    zygote: Process | None
    api: ServeApi


def running(config: str, home: Home) -> Endpoint | None:
    """The endpoint that serves a config already, known by its digest, if there is one."""
    endpoint = home.read()
    if endpoint and endpoint.ready and endpoint.config == config and processes.members(home.run):
        return endpoint
    return None


def up(
    config: Mapping[str, Any],
    models: Sequence[Served],
    home: Home,
    *,
    stand_in: bool,
    digest: str = "",
    door: Door | None = None,
    watch: Watch = lambda _: None,
) -> Endpoint:
    """Starts everything and returns when each model has answered. With a `door`, that stands on the port of the config,
    and Ray Serve behind it on another one. What was started is ended when it fails, and when it is interrupted.
    `preflight.check` comes first; `digest` tells `running` later what is served."""
    port = config["http_options"]["port"]
    config = listening(config, door.serve) if door else config
    taken = {port, *((door.serve, door.metrics) if door else ())}
    endpoint = Endpoint(
        url=f"http://127.0.0.1:{port}",
        bare=f"http://127.0.0.1:{config['http_options']['port']}",
        port=port,
        dashboard=processes.free_port(taken),
        models=tuple(models),
        stand_in=stand_in,
        gateway=door is not None,
        config=digest,
    )
    try:
        try:
            _begin(config, endpoint, home, taken, watch, door, shared=stand_in)
        except Failed as failed:
            if not stand_in or WORKER_DIED not in str(failed):
                raise
            # A fork of a process with threads can come out broken: rarely, and never twice the same way.
            watch("a worker died at its start; once more, each importing vLLM for itself")
            processes.end(home.run, grace=2)
            _begin(config, endpoint, home, taken, watch, door, shared=False)
    except BaseException:
        watch("ending what was started")
        processes.end(home.run, grace=2)
        home.clear()
        raise
    ready = endpoint.model_copy(update={"ready": True})
    home.write(ready)
    return ready


def _begin(
    config: Mapping[str, Any],
    endpoint: Endpoint,
    home: Home,
    taken: set[int],
    watch: Watch,
    door: Door | None,
    *,
    shared: bool,
) -> None:
    """`shared`: one import of vLLM for all processes."""
    home.prepare(secrets.token_hex(32))
    home.write(endpoint)
    if door:
        # What HAProxy refuses is told before anybody has waited for a model.
        gateways.write(door, home)
        gateways.check(home)
    _serve(config, endpoint, home, taken, watch, shared)
    if door:
        watch("the gateway")
        gateways.open_door(door, home, endpoint.url)


def down(home: Home) -> int:
    """Ends every process of the endpoint, however much of it is left, and says how many there were."""
    ended = processes.end(home.run, grace=2)
    home.clear()
    return ended


def _serve(
    config: Mapping[str, Any], endpoint: Endpoint, home: Home, taken: set[int], watch: Watch, shared: bool
) -> None:
    ray = _start(config, endpoint, home, taken, shared)
    watch("Ray's head")
    _wait(lambda: ray.api.answers() or None, "Ray's head", START, ray)
    # Proxies and controller come up while vLLM is still being imported.
    watch("Serve's HTTP proxy")
    _deploy(ray, {**config, "applications": []})
    if ray.zygote:
        watch("vLLM's modules")
        _wait(lambda: home.zygote.exists() or None, "vLLM's modules", START, ray)
    watch("Serve takes the config")
    _deploy(ray, config)
    _wait(lambda: _progress(ray.api.status(), home, watch), "the applications", DEPLOY, ray)
    _warm_up(endpoint, watch)


def _start(config: Mapping[str, Any], endpoint: Endpoint, home: Home, taken: set[int], shared: bool) -> _Ray:
    env = ray_cluster.environment(home, stand_in=endpoint.stand_in, metrics=processes.free_port(taken))
    python, zygote = Path(sys.executable), None
    if shared:
        python = ray_cluster.write_python(home)
        zygote = processes.start(
            ray_cluster.zygote_command(home), run=home.run, log=home.logs / "zygote.log", env=env, cwd=home.state
        )
    command = ray_cluster.head_command(
        home,
        python=python,
        cpus=IDLE_SLOTS + 4 * len(config["applications"]) + 2 * len(endpoint.models),
        dashboard=endpoint.dashboard,
        taken=taken,
    )
    head = processes.start(command, run=home.run, log=home.logs / "ray.log", env=env, cwd=home.state)
    client = httpx.Client(
        base_url=f"http://127.0.0.1:{endpoint.dashboard}",
        headers={"Authorization": f"Bearer {home.token.read_text()}"},
        timeout=120,
        trust_env=False,
    )
    return _Ray(head, zygote, ServeApi(client))


def _deploy(ray: _Ray, config: Mapping[str, Any]) -> None:
    try:
        ray.api.deploy(config)
    except httpx.HTTPStatusError as error:
        raise Failed(f"Serve refuses the config: {error.response.text.strip()}") from error
    except httpx.TransportError as error:
        raise Failed(f"Serve does not answer: {error}\n{processes.tail(ray.head.log)}") from error


def _wait(ready: Callable[[], bool | None], what: str, timeout: float, ray: _Ray) -> None:
    needs = [process for process in (ray.head, ray.zygote) if process]
    processes.wait_until(ready, what=what, timeout=timeout, needs=needs)


def _progress(status: Status, home: Home, watch: Watch) -> bool | None:
    if status.failed:
        log = _newest(home.keep_logs(), "worker-*.err")
        text = f"application `{status.failed}` does not come up:\n{status.messages[status.failed].strip()}"
        raise Failed(f"{text}\n{processes.tail(log)}" if log else text)
    running, wanted = status.replicas
    waiting = [name for name, state in status.applications.items() if state != "RUNNING"]
    if waiting:
        watch(f"{', '.join(waiting)}: {running} of {wanted} replicas" if wanted else "Serve builds the applications")
    return status.running or None


def _warm_up(endpoint: Endpoint, watch: Watch) -> None:
    """RUNNING says that engines were made; a first token says that they compute."""
    client = httpx.Client(base_url=endpoint.bare, timeout=600, trust_env=False)
    for model in endpoint.models:
        watch(f"first token of {model.model}")
        _until_routed(client, model)


def _until_routed(client: httpx.Client, model: Served) -> None:
    """The proxy hears of a new route a moment after the application runs."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return one_token(client, model)
        except httpx.HTTPStatusError as error:
            if error.response.status_code not in (404, 503) or time.monotonic() > deadline:
                raise Failed(f"{model.model} answers {error.response.status_code}: {error.response.text}") from error
        except httpx.TransportError as error:
            if time.monotonic() > deadline:
                raise Failed(f"{model.model} does not answer: {error}") from error
        time.sleep(0.3)


def _newest(folder: Path, pattern: str) -> Path | None:
    """The log that was written to last: of what failed last."""
    logs = [log for log in folder.glob(pattern) if log.stat().st_size]
    return max(logs, key=lambda log: log.stat().st_mtime, default=None)
