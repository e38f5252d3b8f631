"""Backup and restore of the state of a Ray head: what docs/tasks/back-up-and-restore.md does, with processes."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rayhelm import processes
from rayhelm.processes import wait_until
from serve.redis_server import NO_TOKEN, TABLE, ask, start_head, start_redis

pytestmark = [pytest.mark.serve, pytest.mark.timeout(900)]

USER = ("ray", "secret")
USERS = "user default off\nuser ray on >secret ~* +@all\n"
IP = "127.0.0.2"
"""For `127.0.0.1` a driver takes the address of the computer, where another Ray may have the same port."""
CREATE = """
import ray
ray.init(address="{ip}:{port}", _node_ip_address="{ip}", namespace="kept", log_to_driver=False)

@ray.remote(num_cpus=0, max_restarts=-1)
class Kept:
    def answer(self):
        return 42

assert ray.get(Kept.options(name="kept", lifetime="detached").remote().answer.remote(), timeout=120) == 42
"""
FIND = """
import ray
ray.init(address="{ip}:{port}", _node_ip_address="{ip}", namespace="kept", log_to_driver=False)
assert ray.get(ray.get_actor("kept").answer.remote(), timeout=120) == 42
"""
MISS = """
import ray
ray.init(address="{ip}:{port}", _node_ip_address="{ip}", namespace="kept", log_to_driver=False)
try:
    ray.get_actor("kept")
except ValueError:
    raise SystemExit(0)
raise SystemExit("found")
"""


@pytest.fixture
def folders() -> Iterator[tuple[Path, Path]]:
    """Short paths: Ray makes sockets below them. A new pod has an empty one."""
    with (
        tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as first,
        tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as second,
    ):
        yield Path(first), Path(second)


def run_driver(text: str, port: int) -> None:
    command = [sys.executable, "-c", text.replace("{port}", str(port)).replace("{ip}", IP)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, env={**os.environ, **NO_TOKEN}
    )
    assert done.returncode == 0, done.stdout + done.stderr


def wait_for_head(head: processes.Process) -> None:
    def is_started() -> bool:
        assert head.is_alive, head.log.read_text()
        return "Ray runtime started" in head.log.read_text()

    wait_until(lambda: is_started() or None, what="the head", timeout=180)


@pytest.mark.parametrize("restored", [True, False], ids=["with-dump", "without-dump"])
def test_head_on_a_restored_redis_keeps_its_actors(restored: bool, folders: tuple[Path, Path], tmp_path: Path) -> None:
    """The Serve controller is a detached actor with such restarts. Without the dump, the actor is gone."""
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir(), after.mkdir()
    gcs = processes.find_free_port(set())
    with start_redis(before, USER, USERS) as redis, start_head(redis, USER, folders[0], gcs, IP) as head:
        wait_for_head(head)
        run_driver(CREATE, gcs)
        assert ask(redis, USER, "SAVE") == "+OK"
    if restored:
        shutil.copy(before / "dump.rdb", after / "dump.rdb")
    with start_redis(after, USER, USERS) as redis:
        assert (ask(redis, USER, "HLEN", TABLE) != ":0") is restored
        with start_head(redis, USER, folders[1], gcs, IP) as head:
            wait_for_head(head)
            run_driver(FIND if restored else MISS, gcs)
