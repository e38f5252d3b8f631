"""The Ray cluster under the service: versions, authentication, upgrade, autoscaler, fault tolerance."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.values.common.base import Port, Quantity, Values
from rayhelm.values.common.labels import ObjectName, SecretKeyName
from rayhelm.versions import versions

__all__ = [
    "Auth",
    "GcsFaultTolerance",
    "KubeRay",
    "Ray",
    "RayAutoscaler",
    "SecretKeyRef",
    "SidecarResources",
    "Upgrade",
]


class SecretKeyRef(Values):
    """One key of a Secret that is already there; secrets never stand in values."""

    name: ObjectName | Literal[""] = ""
    """Name of the Secret; empty for none."""
    key: SecretKeyName = "token"
    """Key inside the Secret."""


class KubeRay(Values):
    """The operator that reads the RayService."""

    version: Literal["1.7.0", "1.6.2"] = "1.7.0"
    """Version of the operator in the cluster; fields and rules differ, and what it does not know is refused."""


class Ray(Values):
    """The Ray in the image."""

    version: Annotated[str, Field(pattern=r"^2\.[0-9]+\.[0-9]+$")] = versions().ray
    """Version of Ray in every image; decides probes, autoscaler and authentication, so it has to be true."""


class Auth(Values):
    """Authentication of Ray's own dashboard, jobs and GCS. The inference endpoint has none: a gateway has to."""

    mode: Literal["token", "disabled"] = "token"
    """`token` is rendered in words: an empty `authOptions` would turn nothing on."""
    secret_name: ObjectName | Literal[""] = ""
    """Secret with the key `auth_token`. Empty: KubeRay makes one for each cluster, so the token changes at upgrades.
    Named: it has to exist first, or the pods wait in CreateContainerConfigError."""
    reason: str = ""
    """Why authentication is off; required for `disabled`, because the dashboard runs any code it is sent."""


class IncrementalUpgrade(Values):
    """Steps of `NewClusterWithIncrementalUpgrade`; needs the Gateway API in the cluster."""

    gateway_class_name: ObjectName | Literal[""] = ""
    """GatewayClass of the Gateway that KubeRay makes; required by this strategy."""
    gateway_service: ObjectName | Literal[""] = ""
    """DNS name of the Service that the Gateway's controller makes: there is no `<name>-serve-svc` with this strategy.
    Required where aliases or the test are on."""
    gateway_ports: Annotated[list[Port], Field(min_length=1)] = [80]
    """Ports on which the Gateway's pods listen, for the policy of the test: policies see the pod's port, not the
    Service's, and some controllers add to it (Envoy Gateway: 10080)."""
    step_size_percent: Annotated[int, Field(ge=0, le=100)] = 25
    """Traffic moved in one step, percent; at most `maxSurgePercent`."""
    interval_seconds: Annotated[int, Field(ge=1)] = 60
    """Seconds between steps."""
    max_surge_percent: Annotated[int, Field(ge=0, le=100)] = 100
    """Extra capacity of the new cluster, percent: 100 needs twice the GPUs for a while."""


class Upgrade(Values):
    """What a change of the cluster (image, environment, resources) does. A change of applications alone is made in
    place."""

    strategy: Literal["NewCluster", "NewClusterWithIncrementalUpgrade", "None"] = "NewCluster"
    """`NewCluster` starts a second cluster and needs twice the GPUs; `None` changes nothing until set otherwise."""
    incremental: IncrementalUpgrade = IncrementalUpgrade()
    """Steps of the incremental strategy."""
    deletion_delay_seconds: Annotated[int, Field(ge=0)] = 600
    """Seconds that the old cluster lives on after the switch: proxies and gateways learn of the new one late, and
    requests in flight have to end. At least the largest `gracefulShutdownSeconds`."""


class SidecarResources(Values):
    """Limits, and requests of the same size."""

    cpu: Quantity = "500m"
    """CPU cores."""
    cpu_request: Quantity | Literal[""] = ""
    """Cores that the scheduler sets aside; empty for all of them."""
    memory: Quantity = "1Gi"
    """Memory."""


class RayAutoscaler(Values):
    """Ray's autoscaler: a sidecar of the head that asks for worker pods when replicas wait for a place."""

    enabled: bool = True
    """Off: every group holds `minReplicas` workers, and Serve can only scale within them."""
    version: Literal["v2"] = "v2"
    """v1 has ended all nodes when the API server timed out, so it is not offered."""
    idle_timeout_seconds: Annotated[int, Field(ge=0)] = 300
    """Seconds that a worker stays without work; loading a model again costs minutes."""
    upscaling_mode: Literal["Default", "Aggressive", "Conservative"] = "Default"
    """How many workers are asked for at once."""
    resources: SidecarResources = SidecarResources()
    """Resources of the sidecar."""


class GcsFaultTolerance(Values):
    """Keeps the cluster's state outside the head, so that replicas go on serving while a lost head comes back."""

    enabled: bool = False
    """Needs a Redis that survives the head."""
    redis_address: str = ""
    """`redis:6379` or `rediss://host:6380`."""
    password_secret: SecretKeyRef = SecretKeyRef(key="password")
    """Password of Redis."""
