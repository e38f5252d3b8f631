"""A Redis with an access control list: a Ray head needs the user of its owner, and another user reads nothing."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rayhelm.processes import wait_until
from serve.redis_server import SPACE, TABLE, ask, start_head, start_redis

OWNER, OTHER = ("ray-search", "secret-of-search"), ("ray-other", "secret-of-other")
# `DUMMY` is a key that the GCS deletes to find the leader of a Redis cluster. Docs: docs/explanation/isolation.md.
USERS = f"""user default off
user {OWNER[0]} on >{OWNER[1]} ~RAY{SPACE}@* ~DUMMY +@hash +@connection +info +del +scan
user {OTHER[0]} on >{OTHER[1]} ~RAYffffffff@* ~DUMMY +@all
"""


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a Redis that knows the users."""
    with start_redis(tmp_path_factory.mktemp("redis"), OWNER, USERS) as port:
        yield port


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
