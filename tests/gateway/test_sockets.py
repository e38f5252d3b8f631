"""Sockets between the frontends of one gateway: another user of the computer or of the pod cannot open them."""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.kit import GatewayProcess
from gateway.test_remote_of_fleet import start_fleet

ANOTHER_USER = 65534


@pytest.fixture(scope="module")
def gateway():
    with start_fleet() as (eu, _):
        yield eu.gateway


def list_sockets(gateway: GatewayProcess) -> list[Path]:
    return [path for path in gateway.folder.iterdir() if path.is_socket()]


def test_only_the_user_of_the_gateway_can_open_its_sockets(gateway: GatewayProcess) -> None:
    found = list_sockets(gateway)
    assert {path.name.partition("-")[0] for path in found} == {"again", "remote"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600}
    for path in found:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
    if os.geteuid():
        return  # only root can become another user
    gateway.folder.chmod(0o755)
    for path in found:
        with as_another_user(), socket.socket(socket.AF_UNIX) as client, pytest.raises(PermissionError):
            client.connect(str(path))


@contextmanager
def as_another_user() -> Iterator[None]:
    os.seteuid(ANOTHER_USER)
    try:
        yield
    finally:
        os.seteuid(0)


def test_gateway_has_no_abstract_socket(gateway: GatewayProcess) -> None:
    """An abstract socket has no owner: every process in the network namespace can open it."""
    binds = [line.split()[1] for line in (gateway.folder / "haproxy.cfg").read_text().splitlines() if " bind " in line]
    assert len(binds) > 2
    assert not [bind for bind in binds if "abns@" in bind]
