"""What happens, and where: one row of the table each."""

from collections.abc import Callable
from dataclasses import dataclass

from failures import changes, doors, pods
from failures.scene import Scene, Setting

__all__ = ["ROWS", "Row"]

PAIRS = Setting(workers=2, redis=True)
"""Two of what is killed, and a head whose state outlives it."""
LONE = Setting(workers=1)
"""What has only one of everything: upgrades, for the memory of two clusters, and what a lone replica takes with it."""
VERSIONS = Setting(fleet="versions")


@dataclass(frozen=True)
class Row:
    """One thing that happens."""

    name: str
    what: str
    """In words."""
    setting: Setting
    happen: Callable[[Scene], None]
    """Returns when all is whole again."""


ROWS = (
    Row("gateway rolled", "every pod of the gateway is replaced", PAIRS, doors.door_rolled),
    Row("gateway killed", "one of two pods of the gateway is killed", PAIRS, doors.door_killed),
    Row("operator restarted", "the KubeRay operator is replaced", PAIRS, pods.operator_restarted),
    Row("replica killed", "the process of one of two replicas is killed", PAIRS, pods.replica_killed),
    Row("ingress killed", "the process of one of two ingresses is killed", PAIRS, pods.ingress_killed),
    Row("worker killed", "one of two worker pods is killed", PAIRS, pods.worker_killed),
    Row("head killed", "the head pod is killed; its state is in Redis", PAIRS, pods.head_killed),
    Row("drained", "each worker and each gateway pod is evicted, one after the other", PAIRS, pods.pods_drained),
    Row("model changed", "an argument of the engine is edited", PAIRS, changes.config_changed),
    Row("cluster changed", "the environment of the pods is edited: another Ray cluster", LONE, changes.cluster_changed),
    Row("key rotated", "callers change to a second key, and the first is withdrawn", LONE, doors.key_rotated),
    Row("lone model changed", "an argument of the engine is edited", LONE, changes.config_changed),
    Row("lone replica killed", "the process of the only replica is killed", LONE, pods.replica_killed),
    Row("lone worker killed", "the only worker pod is killed", LONE, pods.worker_killed),
    Row("head killed, no Redis", "the head pod is killed, and its state with it", LONE, pods.head_killed),
    Row("versions", "a second version gets 20 %, all, and none of the requests", VERSIONS, doors.shares_moved),
)
