"""A real Redis, and Ray heads that store their state in it, for tests."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rayhelm import processes
from rayhelm.processes import wait_until

__all__ = ["NO_TOKEN", "SPACE", "TABLE", "ask", "start_head", "start_redis"]

SPACE = "0a1b2c3d"
"""External storage namespace; KubeRay takes the UID of the RayCluster."""
NO_TOKEN = {"RAY_AUTH_MODE": "disabled"}
"""Without it, Ray takes a token that exists in the home folder, and a driver does not."""
TABLE = f"RAY{SPACE}@KV"


@contextmanager
def start_redis(folder: Path, user: tuple[str, str], users: str) -> Iterator[int]:
    """Start a Redis with an access control list, and yield its port. It reads `dump.rdb` in the folder, if it is there.
    Debian's `redis-check-rdb` is the same program by another name."""
    program = shutil.which("redis-server") or shutil.which("redis-check-rdb")
    if not program:
        pytest.skip("Redis is not installed")
    port = processes.find_free_port(set())
    (folder / "users.acl").write_text(users)
    options = {"port": port, "bind": "127.0.0.1", "appendonly": "no", "aclfile": folder / "users.acl", "dir": folder}
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(["redis-server", *words, "--save", ""], executable=program, stdout=log, stderr=log)
    try:
        wait_until(lambda: ask(port, user, "PING") == "+PONG" or None, what="Redis", timeout=60)
        yield port
    finally:
        process.kill()
        process.wait()


def ask(port: int, user: tuple[str, str], *words: str) -> str:
    """Return the first line of the response to a command, or to AUTH if it fails; empty without a server."""
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=30) as connection,
            connection.makefile("rb") as lines,
        ):
            for command in (("AUTH", *user), words):
                parts = "".join(f"${len(word)}\r\n{word}\r\n" for word in command)
                connection.sendall(f"*{len(command)}\r\n{parts}".encode())
                line = lines.readline().decode().strip()
                if line.startswith("-"):
                    break
            return line
    except OSError:
        return ""


@contextmanager
def start_head(
    port: int, user: tuple[str, str], folder: Path, gcs: int | None = None, ip: str = "127.0.0.1"
) -> Iterator[processes.Process]:
    """Start `ray start` with the options and variables that KubeRay makes of the values. `gcs`: port of the GCS."""
    taken = {gcs} if gcs else set[int]()
    names = ("port", "dashboard-agent-listen-port", "dashboard-agent-grpc-port", "metrics-export-port")
    ports = {name: processes.find_free_port(taken) for name in (*names, "runtime-env-agent-port", "node-manager-port")}
    if gcs:
        ports["port"] = gcs
    options = {
        **ports,
        "node-ip-address": ip,
        "min-worker-port": 0,
        "max-worker-port": 0,
        "num-cpus": 0,
        "object-store-memory": 80_000_000,
        "include-dashboard": "false",
        "temp-dir": folder,
        "redis-username": user[0],
        "redis-password": user[1],
    }
    words = [f"--{key}={value}" for key, value in options.items()]
    space = {"RAY_REDIS_ADDRESS": f"127.0.0.1:{port}", "RAY_external_storage_namespace": SPACE}
    environment = {**os.environ, **space, "RAY_USAGE_STATS_ENABLED": "0", **NO_TOKEN}
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--no-monitor", *words]
    run = processes.create_run_id()
    try:
        yield processes.start(command, run=run, log=folder / "log", env=environment)
    finally:
        processes.stop_run(run, grace=0)
