"""Queue of Kueue."""

from typing import Literal

from rayhelm.deploy.values.common.base import Name, Values

__all__ = ["Kueue"]


class Kueue(Values):
    """A LocalQueue of the namespace, for workloads that name it in the label `kueue.x-k8s.io/queue-name`."""

    local_queue: Name | Literal[""] = ""
    """Name of the LocalQueue; empty for none."""
    cluster_queue: Name | Literal[""] = ""
    """ClusterQueue of the LocalQueue. It has to exist, and cannot be changed later."""
    api_version: Literal["v1beta2", "v1beta1"] = "v1beta2"
    """Version of Kueue's API: `v1beta1` for older releases."""
