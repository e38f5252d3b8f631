"""What one container or one claim may ask for."""

from typing import Literal

from rayhelm.values.common.base import Quantity, Values

__all__ = ["TenantLimits"]

Bound = Quantity | Literal[""]


class ContainerDefaults(Values):
    """CPU and memory that are given where none are asked for."""

    cpu: Quantity
    """CPU cores."""
    memory: Quantity
    """Memory."""


class AmountBounds(Values):
    """CPU and memory."""

    cpu: Bound = ""
    """CPU cores; empty for no bound."""
    memory: Bound = ""
    """Memory; empty for no bound."""


class ContainerLimits(Values):
    """Containers, init containers too."""

    default_request: ContainerDefaults = ContainerDefaults(cpu="100m", memory="128Mi")
    """Requests of a container that has none."""
    default: ContainerDefaults = ContainerDefaults(cpu="1", memory="1Gi")
    """Limits of a container that has none."""
    min: AmountBounds = AmountBounds()
    """Least that a container may ask for, at most 50m and 64Mi: `ray-service`'s own init container asks for that, the
    pod of its `helm test` for 100m and 64Mi, and KubeRay's init container for 200m and 256Mi. With more no worker ever
    starts."""
    max: AmountBounds = AmountBounds()
    """Most that a container may ask for."""


class ClaimLimits(Values):
    """PersistentVolumeClaims."""

    min: Bound = ""
    """Least size; empty for no bound."""
    max: Bound = ""
    """Largest size; empty for no bound."""


class TenantLimits(Values):
    """A LimitRange."""

    container: ContainerLimits = ContainerLimits()
    """Containers."""
    claim: ClaimLimits = ClaimLimits()
    """Claims."""
