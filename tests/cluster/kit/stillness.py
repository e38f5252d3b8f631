"""Whether anything in a namespace was touched."""

import json

from cluster.kit.cluster import Cluster, Object
from cluster.kit.wait import eventually

__all__ = ["at_rest", "touches"]

Touches = dict[str, str]
COUNTING = ("ResourceQuota", "HorizontalPodAutoscaler")
"""Where an API has no generation, the version stands for it; but what these count is written all the time."""


def touches(cluster: Cluster, namespace: str) -> Touches:
    """Of each object what moves with every write that is not one of its status."""
    return {f"{item['kind']} {item['metadata']['name']}": _touch(item) for item in cluster.everything(namespace)}


def at_rest(cluster: Cluster, namespace: str) -> Touches:
    """The same, once it has come to rest."""
    seen: list[Touches] = [{}]

    def is_as_before() -> bool:
        seen.append(touches(cluster, namespace))
        return seen[-1] == seen[-2]

    eventually(is_as_before, f"{namespace} coming to rest")
    return seen[-1]


def _touch(item: Object) -> str:
    about = item["metadata"]
    version = about.get("generation") or (item["kind"] in COUNTING and item["spec"]) or about["resourceVersion"]
    marks = {key: about.get(key) for key in ("labels", "annotations", "finalizers", "ownerReferences")}
    return f"{about['uid']} {version} {json.dumps(marks, sort_keys=True)}"
