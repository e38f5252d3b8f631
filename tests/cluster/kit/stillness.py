"""Whether anything in a namespace was touched."""

import json
import time

from cluster.kit.cluster import Cluster, Object
from cluster.kit.wait import eventually

__all__ = ["at_rest", "touches"]

Touches = dict[str, str]
REST = 3.0
"""Seconds without a write: the operator looks at a service every 2 s."""
COUNTING = ("ResourceQuota", "HorizontalPodAutoscaler")
"""Where an API has no generation, the version stands for it; but what these count is written all the time."""


def touches(cluster: Cluster, namespace: str) -> Touches:
    """Of each object what moves with every write that is not one of its status."""
    return {f"{item['kind']} {item['metadata']['name']}": _touch(item) for item in cluster.everything(namespace)}


def at_rest(cluster: Cluster, namespace: str) -> Touches:
    """The same, once it has come to rest."""
    found, since = touches(cluster, namespace), time.monotonic()

    def rests() -> bool:
        nonlocal found, since
        if (now := touches(cluster, namespace)) != found:
            found, since = now, time.monotonic()
        return time.monotonic() - since > REST

    eventually(rests, f"{namespace} coming to rest")
    return found


def _touch(item: Object) -> str:
    about = item["metadata"]
    version = about.get("generation") or (item["kind"] in COUNTING and item["spec"]) or about["resourceVersion"]
    marks = {key: about.get(key) for key in ("labels", "annotations", "finalizers", "ownerReferences")}
    return f"{about['uid']} {version} {json.dumps(marks, sort_keys=True)}"
