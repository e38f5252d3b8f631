"""Ray cluster of the service: versions, authentication, upgrade, autoscaler, fault tolerance."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Port, Values
from rayhelm.deploy.values.common.labels import ObjectName, SecretKeyName
from rayhelm.deploy.values.ray_service.resources import ContainerResources, build_resources
from rayhelm.facts.versions import versions

__all__ = [
    "Auth",
    "GcsFaultTolerance",
    "KubeRay",
    "Ray",
    "RayAutoscaler",
    "SecretKeyRef",
    "Upgrade",
]


class SecretKeyRef(Values):
    """Key of an existing Secret. Values never contain the secret itself."""

    name: ObjectName | Literal[""] = ""
    """Name of the Secret; none when empty."""
    key: SecretKeyName = "token"
    """Key in the Secret."""


class KubeRay(Values):
    """KubeRay operator of the cluster."""

    version: Literal["1.7.0", "1.6.2"] = "1.7.0"
    """Version of the KubeRay operator in the cluster. Fields and rules differ by version; the chart refuses fields that
    this version does not know."""


class Ray(Values):
    """Ray in the image."""

    version: Annotated[str, Field(pattern=r"^2\.[0-9]+\.[0-9]+$")] = versions().ray
    """Version of Ray in all images. Probes, autoscaler and authentication depend on it, so it must match the images."""


class Auth(Values):
    """Authentication of Ray's dashboard, jobs and GCS. The inference endpoint has no authentication; the gateway checks
    API keys."""

    mode: Literal["token", "disabled"] = "token"
    """Authentication mode. `token` is always rendered, because an empty `authOptions` would turn nothing on."""
    secret_name: ObjectName | Literal[""] = ""
    """Secret with the key `auth_token`. When empty, KubeRay creates one for each Ray cluster, so the token changes at
    each upgrade. When set, it must exist before the install, or the pods stay in CreateContainerConfigError."""
    reason: str = ""
    """Reason why authentication is off. Required for `disabled`, because the dashboard runs any code that it
    receives."""


class IncrementalUpgrade(Values):
    """Steps of `NewClusterWithIncrementalUpgrade`. Requires the Gateway API in the cluster."""

    gateway_class_name: ObjectName | Literal[""] = ""
    """GatewayClass of the Gateway that KubeRay creates. Required by this strategy."""
    gateway_service: ObjectName | Literal[""] = ""
    """DNS name of the Service that the controller of the Gateway creates. This strategy has no `<name>-serve-svc`, so
    aliases and the test require it."""
    gateway_ports: Annotated[list[Port], Field(min_length=1)] = [80]
    """Ports on which the pods of the Gateway listen, for the NetworkPolicy of the test. Network policies check the port
    of the pod, not of the Service, and it can differ (Envoy Gateway: 10080)."""
    step_size_percent: Annotated[int, Field(ge=0, le=100)] = 25
    """Traffic that moves in one step, percent. At most `maxSurgePercent`."""
    interval_seconds: Annotated[int, Field(ge=1)] = 60
    """Seconds between steps."""
    max_surge_percent: Annotated[int, Field(ge=0, le=100)] = 100
    """Capacity of the new cluster during the upgrade, percent of the old one. 100 needs twice the GPUs."""


class Upgrade(Values):
    """What KubeRay does when pods change (image, environment, resources). A change of applications alone applies in
    place."""

    strategy: Literal["NewCluster", "NewClusterWithIncrementalUpgrade", "None"] = "NewCluster"
    """`NewCluster` starts a second Ray cluster and needs twice the GPUs. With `None`, pod changes apply only after the
    RayService is recreated."""
    incremental: IncrementalUpgrade = IncrementalUpgrade()
    """Steps of the incremental strategy."""
    deletion_delay_seconds: Annotated[int, Field(ge=0)] = 600
    """Seconds between the switch to the new cluster and the deletion of the old one. Requests in flight must end in
    this time, so it is at least the largest `gracefulShutdownSeconds`."""


class RayAutoscaler(Values):
    """Ray's autoscaler: a sidecar of the head that adds worker pods when replicas wait for resources."""

    enabled: bool = True
    """Run the autoscaler where a group has fewer `minReplicas` than `maxReplicas`, and for incremental upgrades.
    KubeRay requires it for those. It needs a token of the API server, which only its own container mounts. When off,
    each group has `minReplicas` workers, and Serve scales only within them. A change of whether it runs is a change of
    pods."""
    version: Literal["v2"] = "v2"
    """Version of the autoscaler. v1 is not offered: it stopped all nodes when the API server timed out."""
    idle_timeout_seconds: Annotated[int, Field(ge=0)] = 300
    """Seconds until an idle worker is removed. Loading a model again takes minutes."""
    upscaling_mode: Literal["Default", "Aggressive", "Conservative"] = "Default"
    """How many workers the autoscaler adds at once."""
    resources: ContainerResources = build_resources(cpu="500m", memory="1Gi")
    """Resources of the sidecar."""


class GcsFaultTolerance(Values):
    """State of the Ray cluster in Redis, so that replicas continue to serve while a lost head is replaced."""

    enabled: bool = False
    """Store the state in Redis. Requires a Redis that survives the loss of the head."""
    redis_address: str = ""
    """Address of Redis: `redis:6379` or `rediss://host:6380`."""
    username: str = ""
    """User of Redis, if its access control list has one for this service. Empty: the user `default`."""
    password_secret: SecretKeyRef = SecretKeyRef(key="password")
    """Password of Redis."""
