"""Operation: disruption budgets, service account, test."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Name, Values
from rayhelm.deploy.values.common.image import ImageName
from rayhelm.deploy.values.common.labels import Annotations

__all__ = ["HelmTest", "PodDisruptionBudget", "ServiceAccount"]


class PodDisruptionBudget(Values):
    """PodDisruptionBudgets; the counts are `head.minAvailable` and `workerGroups.*.minAvailable`. A worker is ready
    when a Serve proxy runs on it. Workers that only hold ranks of a replica on another pod are never ready: the budgets
    neither count nor protect them."""

    enabled: bool = True
    """Create PodDisruptionBudgets. When off, a drain can evict all pods at once."""


class ServiceAccount(Values):
    """ServiceAccount of the pods. Only the head mounts its token, and only for the autoscaler."""

    create: bool = True
    """Create the ServiceAccount. When off, `name` must exist."""
    name: Annotated[Name, Field(max_length=50)] | Literal[""] = ""
    """Name of at most 50 characters, because KubeRay truncates longer ones. Release name when empty."""
    annotations: Annotations = {}
    """Annotations, for example for workload identity of a cloud provider."""


class HelmTest(Values):
    """Pod of `helm test`. It requests one token from each model; `/v1/models` would not detect a dead engine."""

    enabled: bool = True
    """Render the test pod."""
    image: ImageName = ""
    """Image with `wget`. The serving image when empty, which has `wget` for KubeRay's probes."""
    timeout_seconds: Annotated[int, Field(ge=1)] = 120
    """Seconds to wait for one response."""
