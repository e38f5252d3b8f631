"""Where the node of the live tests stands, and why there may be none."""

import os
from functools import cache

from rayhelm.errors import RayhelmError
from testbed.node.home import NodeHome
from testbed.node.host import check
from testbed.node.network import Network
from testbed.node.up import CONTROL_PLANE
from testbed.tools import missing
from testbed.tools.checkout import HERE

__all__ = ["GIVEN", "HOME", "NETWORK", "SMALL", "UPGRADE", "why_not"]

GIVEN = os.environ.get("RAYHELM_LIVE_STATE", "")
"""Folder of a node that runs; empty for one of our own."""
HOME = NodeHome(HERE.root / (GIVEN or ".state/node-tests"))
NETWORK = Network.parse("10.210.0.0/16")
"""Another one than that of `make node`, which may run beside."""
SCRAPERS = ("prometheus", "prometheus-operator")
"""Programs that the node itself does not need: tests read metrics with them."""
UPGRADE = 2
"""Ray clusters side by side, while one takes over."""
SMALL = ("test_images", "test_leaves_nothing", "test_network_policies", "test_pods")
"""Files of small pods; each of the others needs the image of Ray and the room of a service that is upgraded."""


@cache
def why_not(clusters: int) -> str:
    """Why there can be no node with room for so many Ray clusters, in one line; empty where there can."""
    try:
        if not GIVEN:
            check(HOME, NETWORK, clusters)
    except RayhelmError as error:
        return "no node: " + "; ".join(line.strip(" -") for line in str(error).splitlines())
    # They are built second: not for a computer that cannot be a node.
    if lacks := [*(set(missing()) & {*CONTROL_PLANE, "kuberay-operator", *SCRAPERS}), *missing(group="node")]:
        return f"no node: `make test-live` builds what is missing ({', '.join(lacks)})"
    if GIVEN and not HOME.record():
        return f"no node: RAYHELM_LIVE_STATE is {GIVEN}, and none runs there"
    return ""
