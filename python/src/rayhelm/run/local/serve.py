"""Serve a serveConfigV2 on this computer in its own Ray cluster, and stop it."""

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
from rayhelm.processes import Process
from rayhelm.run.local import ray_cluster
from rayhelm.run.local.client import ServeApi, ServeStatus, request_one_token
from rayhelm.run.local.config import set_listen_address
from rayhelm.run.local.data_path import build_data_path_environment
from rayhelm.run.local.gateway import LocalGateway, check_files, start_haproxy, write_files
from rayhelm.run.local.prometheus import LocalMetrics, ScrapePorts, start_prometheus
from rayhelm.run.local.state import EndpointModel, EndpointState, LocalEndpoint
from rayhelm.run.local.tracing import build_trace_environment

__all__ = ["ProgressReporter", "StartFailed", "down", "find_running", "up"]

START_TIMEOUT = 180.0
"""Seconds for Ray to start."""
DEPLOY_TIMEOUT = 1800.0
"""Seconds for the applications to start; real weights may have to be downloaded."""
IDLE_SLOTS = 4
"""Logical CPUs in addition to those of replicas: Serve's controller, proxies, processes of the replicas."""

WORKER_DIED = "SYSTEM_ERROR"
"""Ray's name for a worker that ended unexpectedly."""

ProgressReporter = Callable[[str], None]
"""Receives a description of what `up` waits for. The same text again means no change."""


class StartFailed(RayhelmError):
    """The endpoint did not start. Everything that was started is stopped."""


@dataclass(frozen=True)
class _Start:
    """Everything that a start needs."""

    config: Mapping[str, Any]
    endpoint: LocalEndpoint
    state: EndpointState
    gateway: LocalGateway | None
    metrics: LocalMetrics | None
    """What Prometheus reads, with `--metrics`."""
    ports: ScrapePorts
    traces: str
    """URL that traces are sent to; empty for none."""
    data_path: Mapping[str, str]
    """Variables that select the way of requests inside Ray."""
    taken: set[int]
    """Ports that are in use or reserved."""
    report_progress: ProgressReporter


@dataclass(frozen=True)
class _RayProcesses:
    head: Process
    fork_server: Process | None
    api: ServeApi


def find_running(config: str, state: EndpointState) -> LocalEndpoint | None:
    """Return the running endpoint if it serves the configuration with this digest."""
    endpoint = state.read()
    if endpoint and endpoint.ready and endpoint.config == config and processes.list_members(state.run):
        return endpoint
    return None


def up(
    config: Mapping[str, Any],
    models: Sequence[EndpointModel],
    state: EndpointState,
    *,
    stand_in: bool,
    share_imports: bool = False,
    digest: str = "",
    gateway: LocalGateway | None = None,
    metrics: LocalMetrics | None = None,
    traces: str = "",
    data_path: Mapping[str, str] | None = None,
    report_progress: ProgressReporter = lambda _: None,
) -> LocalEndpoint:
    """Start everything and return when each model has answered. Call `preflight.check` first.

    With `gateway`, HAProxy listens on the port of `config` and Ray Serve on another one. `share_imports` starts the
    fork server (CPU stand-ins only). With `metrics`, Prometheus scrapes Ray and the gateway. `traces` is the URL that
    receives traces, and `data_path` what `read_data_path` returns. `find_running` recognizes the endpoint by `digest`.
    If the start fails or is interrupted, everything that was started is stopped.
    """
    port = config["http_options"]["port"]
    config = set_listen_address(config, gateway.serve_port) if gateway else config
    taken = {port, *((gateway.serve_port, gateway.metrics_port) if gateway else ())}
    endpoint = LocalEndpoint(
        url=f"http://127.0.0.1:{port}",
        serve_url=f"http://127.0.0.1:{config['http_options']['port']}",
        port=port,
        dashboard=processes.find_free_port(taken),
        models=tuple(models),
        stand_in=stand_in,
        gateway=gateway is not None,
        config=digest,
        prometheus=f"http://127.0.0.1:{processes.find_free_port(taken)}" if metrics else "",
    )
    ports = ScrapePorts(
        ray=processes.find_free_port(taken),
        dashboard=processes.find_free_port(taken),
        gateway=gateway.metrics_port if gateway else None,
    )
    start = _Start(config, endpoint, state, gateway, metrics, ports, traces, data_path or {}, taken, report_progress)
    try:
        try:
            _start_all(start, share_imports=share_imports)
        except StartFailed as failed:
            if not share_imports or WORKER_DIED not in str(failed):
                raise
            # A fork of a process with threads is sometimes broken; the next one usually is not.
            report_progress("a forked worker died; starting again without --share-imports")
            processes.stop_run(state.run, grace=2)
            _start_all(start, share_imports=False)
    except BaseException:
        report_progress("stopping what was started")
        processes.stop_run(state.run, grace=2)
        state.clear()
        raise
    ready = endpoint.model_copy(update={"ready": True})
    state.write(ready)
    return ready


def _start_all(start: _Start, *, share_imports: bool) -> None:
    state, endpoint, gateway = start.state, start.endpoint, start.gateway
    state.prepare(secrets.token_hex(32))
    state.write(endpoint)
    if gateway:
        # HAProxy checks its configuration before any model starts.
        write_files(gateway, state)
        check_files(state)
    if start.metrics:
        start.report_progress("Prometheus")
        start_prometheus(start.metrics, start.ports, endpoint.prometheus, state)
    _serve(start, share_imports)
    if gateway:
        start.report_progress("the gateway")
        start_haproxy(gateway, state, endpoint.url)


def down(state: EndpointState) -> int:
    """Stop every process of the endpoint and return how many there were."""
    stopped = processes.stop_run(state.run, grace=2)
    state.clear()
    return stopped


def _serve(start: _Start, share_imports: bool) -> None:
    ray = _start_ray(start, share_imports)
    with ray.api.client:
        _deploy_applications(start, ray)
    _warm_up(start.endpoint, start.report_progress)


def _deploy_applications(start: _Start, ray: _RayProcesses) -> None:
    state, report_progress = start.state, start.report_progress
    report_progress("Ray's head")
    _wait(lambda: ray.api.is_reachable() or None, "Ray's head", START_TIMEOUT, ray)
    # An empty config starts Serve's proxies and controller while the fork server still imports vLLM.
    report_progress("Serve's HTTP proxy")
    _deploy(ray, {**start.config, "applications": []})
    if ray.fork_server:
        report_progress("vLLM's modules")
        _wait(lambda: state.fork_socket.exists() or None, "vLLM's modules", START_TIMEOUT, ray)
    report_progress("Serve's configuration")
    _deploy(ray, start.config)
    _wait(lambda: _is_running(ray.api.get_status(), state, report_progress), "the applications", DEPLOY_TIMEOUT, ray)


def _start_ray(start: _Start, share_imports: bool) -> _RayProcesses:
    state, endpoint = start.state, start.endpoint
    env = ray_cluster.build_environment(state, stand_in=endpoint.stand_in, metrics=start.ports.dashboard)
    env |= build_trace_environment(start.traces) | build_data_path_environment(start.data_path, state, start.taken)
    python, fork_server = Path(sys.executable), None
    if share_imports:
        python = ray_cluster.write_python(state)
        command = ray_cluster.build_fork_server_command(state)
        log = state.logs / "fork-server.log"
        fork_server = processes.start(command, run=state.run, log=log, env=env, cwd=state.folder)
    command = ray_cluster.build_head_command(
        state,
        python=python,
        cpus=IDLE_SLOTS + 4 * len(start.config["applications"]) + 2 * len(endpoint.models),
        dashboard=endpoint.dashboard,
        metrics=start.ports.ray,
        taken=start.taken,
    )
    head = processes.start(command, run=state.run, log=state.logs / "ray.log", env=env, cwd=state.folder)
    client = httpx.Client(
        base_url=f"http://127.0.0.1:{endpoint.dashboard}",
        headers={"Authorization": f"Bearer {state.token.read_text()}"},
        timeout=120,
        trust_env=False,
    )
    return _RayProcesses(head, fork_server, ServeApi(client))


def _deploy(ray: _RayProcesses, config: Mapping[str, Any]) -> None:
    try:
        ray.api.deploy(config)
    except httpx.HTTPStatusError as error:
        raise StartFailed(f"Ray Serve rejects the configuration: {error.response.text.strip()}") from error
    except httpx.TransportError as error:
        raise StartFailed(f"Ray Serve does not answer: {error}\n{processes.tail(ray.head.log)}") from error


def _wait(ready: Callable[[], bool | None], what: str, timeout: float, ray: _RayProcesses) -> None:
    needs = [process for process in (ray.head, ray.fork_server) if process]
    processes.wait_until(ready, what=what, timeout=timeout, needs=needs)


def _is_running(status: ServeStatus | None, state: EndpointState, report_progress: ProgressReporter) -> bool | None:
    if status is None:
        return None
    if status.failed:
        log = _find_newest(state.keep_logs(), "worker-*.err")
        text = f"application `{status.failed}` failed to start:\n{status.messages[status.failed].strip()}"
        raise StartFailed(f"{text}\n{processes.tail(log)}" if log else text)
    running, target = status.replicas
    waiting = [name for name, value in status.applications.items() if value != "RUNNING"]
    if waiting:
        replicas = f"{', '.join(waiting)}: {running} of {target} replicas running"
        report_progress(replicas if target else "Serve builds the applications")
    return status.is_running or None


def _warm_up(endpoint: LocalEndpoint, report_progress: ProgressReporter) -> None:
    """Request a token of each model: RUNNING means that the engine exists, not that it computes."""
    with httpx.Client(base_url=endpoint.serve_url, timeout=600, trust_env=False) as client:
        for model in endpoint.models:
            report_progress(f"first token of {model.model}")
            _wait_for_first_token(client, model)


def _wait_for_first_token(client: httpx.Client, model: EndpointModel) -> None:
    """Retry for 60 s: the proxy learns of a new route a moment after the application runs."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return request_one_token(client, model)
        except httpx.HTTPStatusError as error:
            if error.response.status_code not in (404, 503) or time.monotonic() > deadline:
                text = f"{model.model} answers {error.response.status_code}: {error.response.text}"
                raise StartFailed(text) from error
        except httpx.TransportError as error:
            if time.monotonic() > deadline:
                raise StartFailed(f"{model.model} does not answer: {error}") from error
        time.sleep(0.3)


def _find_newest(folder: Path, pattern: str) -> Path | None:
    """Return the non-empty log that was written last: it belongs to what failed last."""
    logs = [log for log in folder.glob(pattern) if log.stat().st_size]
    return max(logs, key=lambda log: log.stat().st_mtime, default=None)
