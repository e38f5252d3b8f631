"""The events of the benchmark: one row of the table each."""

from collections.abc import Callable
from dataclasses import dataclass

from failures import changes, gateways, pods
from failures.installation import Installation, Setting

__all__ = ["ROWS", "Row"]

PAIRS = Setting(workers=2, redis=True)
"""Two workers, replicas and gateways, and Redis for the state of the head."""
SINGLE = Setting(workers=1)
"""One of everything: for the loss of the only replica, and for upgrades, which need the memory of two clusters."""
VERSIONS = Setting(fleet="versions")


@dataclass(frozen=True)
class Row:
    """One event."""

    name: str
    event: str
    """Description."""
    setting: Setting
    run: Callable[[Installation], None]
    """Returns when everything is ready again."""


ROWS = (
    Row("gateway rolled", "rollout of the gateway: every pod is replaced", PAIRS, gateways.roll_gateway),
    Row("gateway killed", "one of two gateway pods is killed", PAIRS, gateways.kill_gateway),
    Row("operator restarted", "the KubeRay operator is replaced", PAIRS, pods.restart_operator),
    Row("replica killed", "the process of one of two replicas is killed", PAIRS, pods.kill_replica),
    Row("ingress killed", "the process of one of two ingresses is killed", PAIRS, pods.kill_ingress),
    Row("worker killed", "one of two worker pods is killed", PAIRS, pods.kill_worker),
    Row("head killed", "the head pod is killed; its state is in Redis", PAIRS, pods.kill_head),
    Row("drained", "each worker and gateway pod is evicted, one after the other", PAIRS, pods.drain_pods),
    Row("model changed", "an engine argument changes", PAIRS, changes.change_config),
    Row("cluster changed", "the environment of the pods changes: a new Ray cluster", SINGLE, changes.change_cluster),
    Row("key rotated", "clients change to a second key, and the first is removed", SINGLE, gateways.rotate_key),
    Row("single model changed", "an engine argument changes", SINGLE, changes.change_config),
    Row("single replica killed", "the process of the only replica is killed", SINGLE, pods.kill_replica),
    Row("single worker killed", "the only worker pod is killed", SINGLE, pods.kill_worker),
    Row("head killed, no Redis", "the head pod is killed; its state is lost", SINGLE, pods.kill_head),
    Row("versions", "a second version gets 20 %, all, and none of the requests", VERSIONS, gateways.move_shares),
)
