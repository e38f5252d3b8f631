"""Pods of the gateway: number, scheduling, shutdown and scraping."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Name, Quantity, Text, Values

__all__ = [
    "Drain",
    "GatewayAutoscaling",
    "GatewayDisruptionBudget",
    "GatewayLimits",
    "GatewayResources",
    "GatewayServiceAccount",
]

Count = Annotated[int, Field(ge=1)]


class GatewayLimits(Values):
    """Limits of the containers."""

    cpu: Quantity = "2"
    """CPU; HAProxy starts one thread per core, at least one."""
    memory: Quantity = "2Gi"
    """Memory. It must hold the largest body for each of `limits.connections`."""


class GatewayRequests(Values):
    """Requests of the containers."""

    cpu: Quantity | Literal[""] = ""
    """CPU; empty: the limit."""
    memory: Quantity | Literal[""] = ""
    """Memory; empty: the limit. With a lower value the node can run out of memory under load."""


class GatewayResources(Values):
    """Resources of the containers."""

    limits: GatewayLimits = GatewayLimits()
    """Limits of the containers."""
    requests: GatewayRequests = GatewayRequests()
    """Requests of the containers; empty values are the limits."""


class Keda(Values):
    """KEDA reads the requests in flight from Prometheus."""

    server_address: str = ""
    """URL of Prometheus; required with `kind: KEDA`."""
    authentication_ref: Name | Literal[""] = ""
    """TriggerAuthentication for Prometheus; empty: none."""


class GatewayAutoscaling(Values):
    """Autoscaling of the pods."""

    kind: Literal["HPA", "KEDA", "None"] = "HPA"
    """`HPA` scales on CPU and, if the target is set, on requests in flight. `KEDA` scales on requests in flight."""
    min_replicas: Count = 2
    """Minimum number of pods. The limits of tenants are divided by it."""
    max_replicas: Count = 6
    """Maximum number of pods."""
    target_cpu_percent: Annotated[int, Field(ge=0, le=100)] = 70
    """Target CPU utilization of the HPA in percent of the CPU request; 0: not used. Without a metrics server the HPA
    still adds pods for requests in flight, but never removes one."""
    target_requests_in_flight: Annotated[int, Field(ge=0)] = 0
    """Target requests in flight per pod of the HPA or KEDA; 0: not used. The HPA reads the pod metric
    `haproxy_requests_in_flight`; chart `platform` has the Prometheus adapter rule that serves it."""
    scale_down_seconds: Annotated[int, Field(ge=0, le=3600)] = 300
    """Stabilization window: seconds of lower load before a pod is removed."""
    keda: Keda = Keda()
    """Settings of `kind: KEDA`."""


class Drain(Values):
    """Shutdown of a pod: it accepts connections for `delaySeconds`, then it finishes its requests and stops."""

    delay_seconds: Annotated[int, Field(ge=0, le=600)] = 10
    """Seconds in which a terminating pod still accepts connections, until its removal from the Service is known."""
    seconds: Annotated[int, Field(ge=1)] = 1320
    """Seconds for the last requests to finish; at least `timeouts.serverSeconds`."""


class GatewayDisruptionBudget(Values):
    """PodDisruptionBudget of the pods."""

    enabled: bool = True
    """`false`: a node drain may evict all pods at once."""
    max_unavailable: Count = 1
    """Pods that may be evicted at once."""


class GatewayServiceAccount(Values):
    """ServiceAccount of the pods. It has no token and no permissions."""

    create: bool = True
    """`false`: the ServiceAccount `name` exists already."""
    name: Name | Literal[""] = ""
    """Name; empty: the name of the release."""
    annotations: dict[str, Text] = {}
    """Annotations."""
