"""Quota of a tenant: GPUs, pods, objects, storage."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Quantity, Values

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
"""Extended resources of the GPUs in the catalog, and of NVIDIA's time slices."""

Count = Annotated[int, Field(ge=0, le=1_000_000)]
Resource = Annotated[
    str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", max_length=250)
]
QueueName = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", max_length=63)]
ClassName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=200)]


class GpuQuota(Values):
    """Quota of one GPU resource: the sum of `baseline` and `upgradeSurge`."""

    planned: Count
    """GPUs that the plan assigns to the tenant's services. 0 without a plan."""
    baseline: Count | None = None
    """GPUs that the services may use while nothing is upgraded. Default: `planned`."""
    upgrade_surge: Count
    """Additional GPUs during upgrades: `NewCluster` uses the GPUs of a service twice for a while. Set 0 only if every
    service has `upgrade.strategy: None`."""


class PodQuota(Values):
    """Quota of pods, heads and Jobs included: the sum of `baseline` and `upgradeSurge`."""

    baseline: Count = 64
    """Pods while nothing is upgraded."""
    upgrade_surge: Count = 64
    """Additional pods during upgrades."""


class ComputeQuota(Values):
    """Quota of CPU or memory requests: the sum of `baseline` and `upgradeSurge`."""

    baseline: Quantity
    """Sum of requests while nothing is upgraded."""
    upgrade_surge: Quantity
    """Additional requests during upgrades."""


class ObjectQuota(Values):
    """Number of objects by kind. 0 forbids the kind."""

    ray_services: Count = 8
    """RayServices."""
    services: Count = 64
    """Services. KubeRay creates up to six for a RayService during an upgrade."""
    jobs: Count = 32
    """Jobs, finished ones included."""
    config_maps: Count = 64
    """ConfigMaps."""
    secrets: Count = 128
    """Secrets. Helm stores one for each of the last ten revisions of a release."""
    persistent_volume_claims: Count = 16
    """PersistentVolumeClaims."""
    service_accounts: Count = 32
    """Service accounts. KubeRay creates one for each Ray cluster with an autoscaler."""
    network_policies: Count = 128
    """NetworkPolicies. The network plugin writes each to all nodes with pods of the tenant."""
    pod_disruption_budgets: Count = 64
    """PodDisruptionBudgets."""
    pod_monitors: Count = 16
    """PodMonitors. Prometheus gets a larger configuration with each."""
    scrape_configs: Count = 16
    """ScrapeConfigs. Prometheus gets a larger configuration with each."""
    load_balancers: Count = 0
    """Services of type LoadBalancer. They bypass the gateway and its API keys."""
    node_ports: Count = 0
    """Services of type NodePort, or LoadBalancer with node ports. They bypass the gateway too."""
    ingresses: Count = 0
    """Ingresses. KubeRay creates one to the dashboard for a head with `enableIngress`."""
    gateways: Count = 0
    """Gateways of the Gateway API. KubeRay creates one for `NewClusterWithIncrementalUpgrade`. Most GatewayClasses
    create a load balancer for it."""
    resource_claims: Count | Literal[""] = ""
    """ResourceClaims of Dynamic Resource Allocation; empty: the sum of `quota.gpus` and `quota.extendedResources`,
    because the scheduler creates one for each pod whose GPU resource is served by a device class
    (`extendedResourceName`). With fewer, such pods stay Pending. Claims of other device classes give pods GPUs that
    `quota.gpus` does not count, but members of the tenant may not create claims."""


class StorageClassQuota(Values):
    """Quota of one storage class."""

    size: Quantity
    """Sum of the sizes of the claims."""


class Storage(Values):
    """Quota of storage."""

    size: Quantity = "4Ti"
    """Sum of the sizes of all claims."""
    classes: dict[ClassName, StorageClassQuota] = {}
    """Quota by storage class."""


class PriorityClassQuota(Values):
    """Quota of one PriorityClass, in addition: pods of a high class preempt the pods of others."""

    pods: Count
    """Pods of the class, during upgrades too."""
    gpus: dict[Resource, Count] = {}
    """GPUs of these pods by GPU resource, during upgrades too."""


class Quota(Values):
    """ResourceQuotas. GPU resources without an entry in `gpus` are denied."""

    gpus: dict[Resource, GpuQuota] = {}
    """GPUs by GPU resource. A resource of `gpuResources` without an entry here is denied."""
    gpu_resources: Annotated[list[Resource], Field(min_length=1)] = list(GPU_RESOURCES)
    """GPU resources of this cluster, as their device plugins name them. Add MIG and other resources of the cluster
    (`nvidia.com/mig-3g.40gb`): a resource that is not listed here is not limited."""
    extended_resources: dict[Resource, Count] = {}
    """Other extended resources of devices, such as RDMA, and how many of each the tenant may use, during upgrades too.
    The policy `gpu-access` refuses extended resources that are neither here nor in `gpus`."""
    compute: dict[Annotated[str, Field(pattern=r"^(cpu|memory)$")], ComputeQuota] = {}
    """CPU and memory. Containers without requests get `limits.container.defaultRequest`."""
    pods: PodQuota = PodQuota()
    """Pods."""
    objects: ObjectQuota = ObjectQuota()
    """Number of objects by kind."""
    storage: Storage = Storage()
    """Storage."""
    priority_classes: dict[ClassName, PriorityClassQuota] = {}
    """Quota by PriorityClass."""
    allowed_priority_classes: Annotated[list[ClassName], Field(min_length=1)] = [
        "rayhelm-head",
        "rayhelm-workers",
        "rayhelm-batch",
    ]
    """PriorityClasses that pods may have, in addition to those of `priorityClasses`. A quota and the policy
    `priority-class` refuse others, because pods of a higher class evict pods of other tenants."""
    scheduler_queues: list[QueueName] = []
    """Queues of Volcano, YuniKorn or KAI that objects may name. The policy `priority-class` refuses others, because a
    queue belongs to the cluster, and a pod in it uses the share of that queue."""
    denied_priority_classes: Annotated[list[ClassName], Field(min_length=1)] = [
        "system-cluster-critical",
        "system-node-critical",
    ]
    """PriorityClasses that neither list above may have. Those of Kubernetes itself would preempt the pods of all other
    tenants."""
