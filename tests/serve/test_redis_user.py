"""A Redis with an access control list: a Ray head needs the user of its owner, and another user reads nothing."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rayhelm import processes
from rayhelm.processes import wait_until

SPACE = "0a1b2c3d"
"""External storage namespace; KubeRay takes the UID of the RayCluster."""
OWNER, OTHER = ("ray-search", "secret-of-search"), ("ray-other", "secret-of-other")
# `DUMMY` is a key that the GCS deletes to find the leader of a Redis cluster. Docs: docs/explanation/isolation.md.
USERS = f"""user default off
user {OWNER[0]} on >{OWNER[1]} ~RAY{SPACE}@* ~DUMMY +@hash +@connection +info +del +scan
user {OTHER[0]} on >{OTHER[1]} ~RAYffffffff@* ~DUMMY +@all
"""
TABLE = f"RAY{SPACE}@KV"


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a Redis that knows the users. Debian's `redis-check-rdb` is the same program by another name."""
    program = shutil.which("redis-server") or shutil.which("redis-check-rdb")
    if not program:
        pytest.skip("Redis is not installed")
    folder, port = tmp_path_factory.mktemp("redis"), processes.find_free_port(set())
    (folder / "users.acl").write_text(USERS)
    options = {"port": port, "bind": "127.0.0.1", "appendonly": "no", "aclfile": folder / "users.acl", "dir": folder}
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(["redis-server", *words, "--save", ""], executable=program, stdout=log, stderr=log)
    try:
        wait_until(lambda: ask(port, OWNER, "PING") == "+PONG" or None, what="Redis", timeout=60)
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
def start_head(port: int, user: tuple[str, str], folder: Path) -> Iterator[processes.Process]:
    """Start `ray start` with the options and variables that KubeRay makes of the values."""
    taken: set[int] = set()
    names = ("port", "dashboard-agent-listen-port", "dashboard-agent-grpc-port", "metrics-export-port")
    ports = {name: processes.find_free_port(taken) for name in (*names, "runtime-env-agent-port", "node-manager-port")}
    options = {
        **ports,
        "node-ip-address": "127.0.0.1",
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
    environment = {**os.environ, **space, "RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--no-monitor", *words]
    run = processes.create_run_id()
    try:
        yield processes.start(command, run=run, log=folder / "log", env=environment)
    finally:
        processes.stop_run(run, grace=0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: Ray makes sockets below it."""
    with tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as name:
        yield Path(name)


def test_head_keeps_its_state_as_its_user_and_another_user_is_refused(redis: int, folder: Path) -> None:
    assert ask(redis, OWNER, "HLEN", TABLE) == ":0"
    with start_head(redis, OWNER, folder) as head:

        def has_state() -> bool:
            assert head.is_alive, head.log.read_text()
            return "Ray runtime started" in head.log.read_text() and ask(redis, OWNER, "HLEN", TABLE) != ":0"

        wait_until(lambda: has_state() or None, what="the state of the head in Redis", timeout=180)
        for command in (("HGETALL", TABLE), ("HSET", TABLE, "a", "b"), ("DEL", TABLE), ("COPY", TABLE, "DUMMY")):
            assert ask(redis, OTHER, *command).startswith("-NOPERM")
        for command in (("KEYS", "*"), ("FLUSHALL",), ("CONFIG", "GET", "*"), ("ACL", "LIST"), ("EVAL", "1", "0")):
            assert ask(redis, OWNER, *command).startswith("-NOPERM")
    arguments = ("127.0.0.1", redis, OWNER[1], False, SPACE, OWNER[0])
    clean = f"from ray._private.gcs_utils import cleanup_redis_storage as clean; assert clean{arguments}"
    subprocess.run([sys.executable, "-c", clean], check=True)
    assert ask(redis, OWNER, "HLEN", TABLE) == ":0", "as KubeRay's Job does it after an uninstall"


def test_head_does_not_start_with_the_password_of_another_user(redis: int, folder: Path) -> None:
    with start_head(redis, (OWNER[0], OTHER[1]), folder) as head:
        wait_until(lambda: not head.is_alive or None, what="the end of the head", timeout=180)
        assert "WRONGPASS" in head.log.read_text()
    assert ask(redis, OWNER, "HLEN", TABLE) == ":0"
