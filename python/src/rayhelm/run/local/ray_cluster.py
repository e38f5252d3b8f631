"""Commands and environment of a Ray cluster on this computer, with token authentication and its own ports."""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from rayhelm import processes
from rayhelm.run.local.state import EndpointState

__all__ = ["build_environment", "build_fork_server_command", "build_head_command", "write_python"]

OBJECT_STORE = 100_000_000
"""Bytes of Ray's object store; only requests and answers pass through it."""

_REMOVED = ("RAY_ADDRESS", "RAY_NAMESPACE", "RAY_TMPDIR", "RAY_AUTH_TOKEN", "PYTHONDONTWRITEBYTECODE")
"""Variables of the user's shell that select another Ray, or make every process compile its modules again."""


def build_environment(
    state: EndpointState, *, stand_in: bool, metrics: int, base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment of everything that `up` starts. `metrics` is the port of the dashboard's own metrics."""
    # Counts tokens by tenant. The user's shell may name another engine, or none for that of Ray Serve LLM.
    defaults = {"RAYLLM_VLLM_ENGINE_CLS": "rayhelm.runtime.token_usage.engine:TokenCountingEngine"}
    kept = {key: value for key, value in (os.environ if base is None else base).items() if key not in _REMOVED}
    ours = {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(state.token),
        "RAY_USAGE_STATS_ENABLED": "0",
        "DASHBOARD_METRIC_PORT": str(metrics),
        "RAYLLM_ENABLE_REQUEST_PROMPT_LOGS": "0",
        # Ray starts its workers at niceness 15 otherwise.
        "RAY_worker_niceness": "0",
        # Serve restarts a proxy that is not ready after 5 s, and gives up after three: too short on a busy computer.
        "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "120",
        "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": "rayhelm.runtime.stream_errors:middlewares",
        # A constructor that failed fails again.
        "RAY_SERVE_MAX_PER_REPLICA_RETRY_COUNT": "1",
        # Ray would look for an address other than loopback.
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }
    cpu = {
        # The sampler's torch.compile adds 31 s to the first request.
        "TORCHDYNAMO_DISABLE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 2) // 2)),
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    return {**defaults, **kept, **ours, **(cpu if stand_in else {})}


def write_python(state: EndpointState) -> Path:
    """Write the program that Ray runs as Python with `--share-imports`: it asks the fork server for a process."""
    client = Path(__file__).with_name("fork_client.py")
    words = [sys.executable, "-ISB", str(client), str(state.fork_socket), sys.executable]
    state.python.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    state.python.chmod(0o700)
    return state.python


def build_fork_server_command(state: EndpointState) -> list[str]:
    return [sys.executable, "-m", "rayhelm.run.local.fork_server", str(state.fork_socket), str(state.python)]


def build_head_command(
    state: EndpointState, *, python: Path, cpus: int, dashboard: int, metrics: int, taken: set[int]
) -> list[str]:
    """Return a `ray start` in the foreground. It names every port, so another Ray can run beside this one.

    `metrics` is the port of the metrics of Ray, Ray Serve and vLLM.
    """

    def port() -> str:
        return str(processes.find_free_port(taken))

    options = {
        "node-ip-address": "127.0.0.1",
        "dashboard-host": "127.0.0.1",
        "dashboard-port": str(dashboard),
        "port": port(),
        "dashboard-agent-listen-port": port(),
        "dashboard-agent-grpc-port": port(),
        "metrics-export-port": str(metrics),
        "runtime-env-agent-port": port(),
        "node-manager-port": port(),
        "object-manager-port": port(),
        "ray-client-server-port": port(),
        # 0 and 0: any free port, not a range that two Rays would share.
        "min-worker-port": "0",
        "max-worker-port": "0",
        "num-cpus": str(cpus),
        "object-store-memory": str(OBJECT_STORE),
        "include-log-monitor": "False",
        "temp-dir": str(state.session),
    }
    arguments = [word for key, value in options.items() for word in (f"--{key}", value)]
    arguments.append("--no-monitor")  # the autoscaler's: there are no nodes to add
    return [sys.executable, "-m", "rayhelm.run.local.ray_head", str(python), "start", "--head", "--block", *arguments]
