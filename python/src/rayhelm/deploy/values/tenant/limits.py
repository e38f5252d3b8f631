"""Limits of single containers and claims."""

from typing import Literal

from rayhelm.deploy.values.common.base import Quantity, Values

__all__ = ["TenantLimits"]

Bound = Quantity | Literal[""]


class ContainerDefaults(Values):
    """CPU and memory of a container that sets none."""

    cpu: Quantity
    """CPU cores."""
    memory: Quantity
    """Memory."""


class AmountBounds(Values):
    """CPU and memory."""

    cpu: Bound = ""
    """CPU cores; empty for no limit."""
    memory: Bound = ""
    """Memory; empty for no limit."""


class ContainerLimitRange(Values):
    """Containers and init containers."""

    default_request: ContainerDefaults = ContainerDefaults(cpu="100m", memory="128Mi")
    """Requests of a container that sets none."""
    default: ContainerDefaults = ContainerDefaults(cpu="1", memory="1Gi")
    """Limits of a container that sets none."""
    min: AmountBounds = AmountBounds()
    """Smallest request of a container, at most 50m and 64Mi: the init container of `ray-service` requests that, the pod
    of its `helm test` 100m and 64Mi, KubeRay's init container 200m and 256Mi. With a larger minimum no worker
    starts."""
    max: AmountBounds = AmountBounds()
    """Largest limit of a container."""


class ClaimLimits(Values):
    """PersistentVolumeClaims."""

    min: Bound = ""
    """Smallest size; empty for no limit."""
    max: Bound = ""
    """Largest size; empty for no limit."""


class TenantLimits(Values):
    """LimitRange of the namespace."""

    container: ContainerLimitRange = ContainerLimitRange()
    """Containers."""
    claim: ClaimLimits = ClaimLimits()
    """Claims."""
