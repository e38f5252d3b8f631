"""What a tenant may hold at once: cards, pods, objects, storage."""

from typing import Annotated

from pydantic import Field

from rayhelm.values.common.base import Quantity, Values

__all__ = ["GPU_RESOURCES", "Quota"]

GPU_RESOURCES = (
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "amd.com/gpu",
    "gpu.intel.com/xe",
    "gpu.intel.com/i915",
    "habana.ai/gaudi",
    "google.com/tpu",
)
"""Extended resources of the catalog's cards, and of NVIDIA's time slices."""

Count = Annotated[int, Field(ge=0, le=1_000_000)]
Resource = Annotated[
    str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", max_length=250)
]
ClassName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=200)]


class GpuQuota(Values):
    """Cards of one kind. The quota is `baseline` and `upgradeSurge` together."""

    planned: Count
    """Cards that the plan gives to the tenant's services, nothing being upgraded. 0 where there is no plan."""
    baseline: Count | None = None
    """Cards that they may hold, nothing being upgraded; as many as planned when left out."""
    upgrade_surge: Count
    """Cards more, for upgrades: `NewCluster` holds a service's cards twice for a while. 0 only where every service has
    `upgrade.strategy: None`."""


class PodQuota(Values):
    """Pods, heads and Jobs included. The quota is `baseline` and `upgradeSurge` together."""

    baseline: Count = 64
    """Pods, nothing being upgraded."""
    upgrade_surge: Count = 64
    """Pods more, for upgrades."""


class ComputeQuota(Values):
    """CPU or memory, as the sum of requests. The quota is `baseline` and `upgradeSurge` together."""

    baseline: Quantity
    """Sum, nothing being upgraded."""
    upgrade_surge: Quantity
    """More, for upgrades."""


class ObjectQuota(Values):
    """Counts of objects. 0 forbids the kind."""

    ray_services: Count = 8
    """RayServices."""
    services: Count = 64
    """Services; KubeRay makes up to six for a RayService while it is upgraded."""
    jobs: Count = 32
    """Jobs, those that have ended included."""
    config_maps: Count = 64
    """ConfigMaps."""
    secrets: Count = 128
    """Secrets; Helm keeps one for each of the last ten revisions of a release."""
    persistent_volume_claims: Count = 16
    """Claims."""
    load_balancers: Count = 0
    """Services of type LoadBalancer. They are a way past the gateway, and past its keys."""
    node_ports: Count = 0
    """Services of type NodePort, or LoadBalancer with node ports: another such way."""
    ingresses: Count = 0
    """Ingresses. KubeRay makes one to the dashboard for a head with `enableIngress`."""
    gateways: Count = 0
    """Gateways of the Gateway API. KubeRay makes one for `NewClusterWithIncrementalUpgrade`, and for most classes that
    opens a load balancer."""
    resource_claims: Count = 0
    """Claims of Dynamic Resource Allocation, with which a pod gets cards that the quota of cards does not count."""


class StorageClassQuota(Values):
    """Storage of one class."""

    size: Quantity
    """Sum of the claims' sizes."""


class Storage(Values):
    """Storage of the claims."""

    size: Quantity = "4Ti"
    """Sum of the claims' sizes, of all classes."""
    classes: dict[ClassName, StorageClassQuota] = {}
    """Bounds of single storage classes, by name."""


class PriorityClassQuota(Values):
    """Bound of the pods of one PriorityClass, in addition to the quota: pods of a high one push others' pods away."""

    pods: Count
    """Pods of the class, upgrades included."""
    gpus: dict[Resource, Count] = {}
    """Cards that they hold, upgrades included, by resource."""


class Quota(Values):
    """ResourceQuotas. What is not named among `gpus` is denied."""

    gpus: dict[Resource, GpuQuota] = {}
    """Cards by extended resource. One of `gpuResources` that is not here is denied."""
    gpu_resources: Annotated[list[Resource], Field(min_length=1)] = list(GPU_RESOURCES)
    """Extended resources of the cards of this cluster, as their device plugins call them; name MIG's and others of
    yours here (`nvidia.com/mig-3g.40gb`). What is neither here nor in a quota can be had without bounds."""
    compute: dict[Annotated[str, Field(pattern=r"^(cpu|memory)$")], ComputeQuota] = {}
    """CPU and memory. Pods that request none are given `limits.container.defaultRequest`."""
    pods: PodQuota = PodQuota()
    """Pods."""
    objects: ObjectQuota = ObjectQuota()
    """Counts of objects."""
    storage: Storage = Storage()
    """Storage."""
    priority_classes: dict[ClassName, PriorityClassQuota] = {}
    """Bounds by PriorityClass."""
    denied_priority_classes: Annotated[list[ClassName], Field(min_length=1)] = [
        "system-cluster-critical",
        "system-node-critical",
    ]
    """PriorityClasses that no pod here may have: Kubernetes' own would push away everybody else's pods."""
