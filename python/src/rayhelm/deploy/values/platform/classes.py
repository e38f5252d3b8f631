"""PriorityClasses and RuntimeClasses."""

from typing import Annotated

from pydantic import Field

from rayhelm.deploy.values.common.base import Values
from rayhelm.deploy.values.common.labels import Labels, ObjectName

__all__ = ["PriorityClasses", "RuntimeClass"]

Priority = Annotated[int, Field(ge=-2_147_483_648, le=1_000_000_000)]
"""Values above a billion are reserved for Kubernetes."""


class PriorityClass(Values):
    """A PriorityClass. None of them is the default of the cluster."""

    name: ObjectName
    """Name, for `priorityClassName` of pods."""
    value: Priority
    """Pods with a higher value are scheduled first."""
    preempts: bool
    """Preempt pods with a lower value if there is no room."""


class PriorityClasses(Values):
    """The value of the gateway is above that of heads, heads above workers, workers above batch."""

    gateway: PriorityClass = PriorityClass(name="rayhelm-gateway", value=2_000_000, preempts=True)
    """The gateway: without it no request is answered."""
    head: PriorityClass = PriorityClass(name="rayhelm-head", value=1_000_000, preempts=True)
    """Heads of Ray clusters: a cluster does not work without its head."""
    workers: PriorityClass = PriorityClass(name="rayhelm-workers", value=100_000, preempts=True)
    """Workers that serve models."""
    batch: PriorityClass = PriorityClass(name="rayhelm-batch", value=1_000, preempts=False)
    """Batch work on the same GPUs: it is preempted by serving and preempts no pod. A PodDisruptionBudget of batch work
    would protect it from serving."""


class RuntimeClass(Values):
    """A RuntimeClass."""

    handler: Annotated[str, Field(pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
    """Name of the runtime in containerd or CRI-O of each node. It cannot be changed later."""
    node_selector: Labels = {}
    """Labels of the nodes that have the runtime; empty for all nodes."""
