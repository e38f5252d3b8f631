"""Tests with real pods, on a node of their own: Linux as root. They run where they are asked for: `make test-live`.

`RAYHELM_LIVE_STATE=.state/node` takes the node of `make node`, and leaves it as it runs.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pods.kit.cluster import Cluster
from pods.kit.ground import GIVEN, HOME, NETWORK, SMALL, UPGRADE, why_not
from rayhelm.errors import RayhelmError
from testbed.node import down, up
from testbed.node.network import Network
from testbed.node.running import Node

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [item for item in items if FOLDER in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.live)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(900))
    if "live" not in config.getoption("markexpr"):
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in ours]
    else:
        for item in ours:
            if reason := why_not(0 if item.path.stem in SMALL else UPGRADE):
                item.add_marker(pytest.mark.skip(reason=reason))


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
