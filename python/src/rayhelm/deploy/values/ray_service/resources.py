"""Resources of containers, in Kubernetes' shape."""

from typing import Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Quantity, Values

__all__ = ["ContainerResources", "build_resources"]


class ContainerLimits(Values):
    """Limits of a container."""

    cpu: Quantity
    """CPU cores. Whole numbers in Ray containers, because Ray rounds up."""
    memory: Quantity
    """Memory, including `/dev/shm`."""


class ContainerRequests(Values):
    """Requests of a container. Memory and devices are requested as their limits."""

    cpu: Quantity | Literal[""] = ""
    """CPU request; the limit when empty. With a lower request the pod shares CPU time with other pods of the node."""


class ContainerResources(Values):
    """Limits and requests of a container. Ray counts the limits, the scheduler the requests."""

    limits: ContainerLimits
    """Limits of the container."""
    requests: ContainerRequests = Field(default=ContainerRequests())
    """Requests of the container."""


def build_resources(*, cpu: str, memory: str, cpu_request: str = "") -> ContainerResources:
    """Return resources with these limits; the CPU request is the limit when empty."""
    return ContainerResources(
        limits=ContainerLimits(cpu=cpu, memory=memory), requests=ContainerRequests(cpu=cpu_request)
    )
