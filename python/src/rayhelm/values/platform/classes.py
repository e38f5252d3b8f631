"""Classes that pods name: who gives way to whom, and which runtime starts them."""

from typing import Annotated

from pydantic import Field

from rayhelm.values.common.base import Values
from rayhelm.values.common.labels import Labels, ObjectName

__all__ = ["PriorityClasses", "RuntimeClass"]

Priority = Annotated[int, Field(ge=-2_147_483_648, le=1_000_000_000)]
"""Above a billion are Kubernetes' own."""


class PriorityClass(Values):
    """A PriorityClass; none is the cluster's default."""

    name: ObjectName
    """Name that pods call it by."""
    value: Priority
    """A pod of a higher value is placed first."""
    preempts: bool
    """Pushes pods of lower value away where there is no room."""


class PriorityClasses(Values):
    """The gateway above heads, heads above workers, workers above batch."""

    gateway: PriorityClass = PriorityClass(name="rayhelm-gateway", value=2_000_000, preempts=True)
    """The one door: without it nothing answers, and heads would push it away."""
    head: PriorityClass = PriorityClass(name="rayhelm-head", value=1_000_000, preempts=True)
    """Heads of Ray clusters: without its head a cluster is lost, and workers can wait."""
    workers: PriorityClass = PriorityClass(name="rayhelm-workers", value=100_000, preempts=True)
    """Workers that serve models."""
    batch: PriorityClass = PriorityClass(name="rayhelm-batch", value=1_000, preempts=False)
    """Work of yours on the same cards that can wait: it gives way to serving, and pushes nobody away."""


class RuntimeClass(Values):
    """A RuntimeClass."""

    handler: Annotated[str, Field(pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
    """Runtime of that name in each node's containerd or CRI-O. Kubernetes does not change it later."""
    node_selector: Labels = {}
    """Labels of the nodes that have it; empty for all."""
