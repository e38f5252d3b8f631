"""Tests with real pods, on a node of their own: Linux as root. They run where they are asked for: `make test-live`.

`RAYHELM_LIVE_STATE=.state/node` takes the node of `make node`, and leaves it as it runs.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.kit.cluster import Cluster
from rayhelm.errors import RayhelmError
from testbed.node import down, up
from testbed.node.bed import Node
from testbed.node.home import NodeHome
from testbed.node.host import check
from testbed.node.network import Network
from testbed.node.up import CONTROL_PLANE
from testbed.tools import missing
from testbed.tools.site import HERE

FOLDER = Path(__file__).parent
GIVEN = os.environ.get("RAYHELM_LIVE_STATE", "")
"""Folder of a node that runs; empty for one of our own."""
HOME = NodeHome(HERE.root / (GIVEN or ".state/node-tests"))
NETWORK = Network.parse("10.210.0.0/16")
"""Another one than that of `make node`, which may run beside."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [item for item in items if FOLDER in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.live)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(900))
    if "live" not in config.getoption("markexpr"):
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in ours]
    elif ours and (reason := _why_not()):
        for item in ours:
            item.add_marker(pytest.mark.skip(reason=reason))


def _why_not() -> str:
    """Why there can be no node, in one line; empty where there can."""
    if lacks := [*(set(missing()) & {*CONTROL_PLANE, "kuberay-operator"}), *missing(group="node")]:
        return f"no node: `make node` builds what is missing ({', '.join(lacks)})"
    if GIVEN:
        return "" if HOME.record() else f"no node: RAYHELM_LIVE_STATE is {GIVEN}, and none runs there"
    try:
        check(HOME, NETWORK)
    except RayhelmError as error:
        return "no node: " + "; ".join(line.strip(" -") for line in str(error).splitlines())
    return ""


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The API server of a node that runs."""
    if record := HOME.record() if GIVEN else None:
        yield Cluster(Node(HOME, Network.of(record.server)))
        return
    try:
        node = up(HOME, NETWORK)
    except RayhelmError as error:
        pytest.fail(str(error), pytrace=False)
    try:
        yield Cluster(node)
    finally:
        down(HOME)


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace that enforces Pod Security `restricted`."""
    with cluster.namespace() as name:
        yield name
