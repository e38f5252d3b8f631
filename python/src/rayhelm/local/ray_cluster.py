"""Commands and environment of a Ray for this computer, with token authentication, on ports of its own."""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from rayhelm import processes
from rayhelm.local.state import Home

__all__ = ["environment", "head_command", "write_python", "zygote_command"]

OBJECT_STORE = 100_000_000
"""Bytes of Ray's object store; requests and answers are all that passes through it."""

_FOREIGN = ("RAY_ADDRESS", "RAY_NAMESPACE", "RAY_TMPDIR", "RAY_AUTH_TOKEN", "PYTHONDONTWRITEBYTECODE")
"""Variables of the user's shell that would lead to another Ray, or make every process compile its modules anew."""


def environment(home: Home, *, stand_in: bool, metrics: int, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Environment of everything that `up` starts. `metrics` is the port of the dashboard's own metrics."""
    kept = {key: value for key, value in (os.environ if base is None else base).items() if key not in _FOREIGN}
    ours = {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(home.token),
        "RAY_USAGE_STATS_ENABLED": "0",
        "DASHBOARD_METRIC_PORT": str(metrics),
        "RAYLLM_ENABLE_REQUEST_PROMPT_LOGS": "0",
        # Ray starts its workers politely, behind everything else on the computer.
        "RAY_worker_niceness": "0",
        # Serve ends a proxy that is not ready in 5 s, thrice, and then gives up: too hard on a busy computer.
        "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "120",
        "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": "rayhelm.runtime.stream_errors:middlewares",
        # A constructor that failed fails again.
        "RAY_SERVE_MAX_PER_REPLICA_RETRY_COUNT": "1",
        # Loopback is all that we serve on, and Ray would look for another address.
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }
    cpu = {
        # The sampler's torch.compile takes 31 s out of the first request.
        "TORCHDYNAMO_DISABLE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 2) // 2)),
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    return {**kept, **ours, **(cpu if stand_in else {})}


def write_python(home: Home) -> Path:
    """What Ray takes for Python in a stand-in run: it asks the zygote for a fork, and starts the real one otherwise."""
    client = Path(__file__).with_name("zygote_client.py")
    words = [sys.executable, "-ISB", str(client), str(home.zygote), sys.executable]
    home.python.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    home.python.chmod(0o700)
    return home.python


def zygote_command(home: Home) -> list[str]:
    return [sys.executable, "-m", "rayhelm.local.zygote", str(home.zygote), str(home.python)]


def head_command(home: Home, *, python: Path, cpus: int, dashboard: int, taken: set[int]) -> list[str]:
    """`ray start` that stays in the foreground. Every port is chosen, so that another Ray may run beside this one."""

    def port() -> str:
        return str(processes.free_port(taken))

    options = {
        "node-ip-address": "127.0.0.1",
        "dashboard-host": "127.0.0.1",
        "dashboard-port": str(dashboard),
        "port": port(),
        "dashboard-agent-listen-port": port(),
        "dashboard-agent-grpc-port": port(),
        "metrics-export-port": port(),
        "runtime-env-agent-port": port(),
        "node-manager-port": port(),
        "object-manager-port": port(),
        "ray-client-server-port": port(),
        # 0 and 0: any free port, in place of a range that two Rays would share.
        "min-worker-port": "0",
        "max-worker-port": "0",
        "num-cpus": str(cpus),
        "object-store-memory": str(OBJECT_STORE),
        "include-log-monitor": "False",
        "temp-dir": str(home.session),
    }
    arguments = [word for key, value in options.items() for word in (f"--{key}", value)]
    return [sys.executable, "-m", "rayhelm.local.ray_head", str(python), "start", "--head", "--block", *arguments]
