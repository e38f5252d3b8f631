"""Pods of the Ray cluster: the head and the worker groups. An edit here, except of replica bounds and tolerations,
starts a new cluster."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Env, Quantity, Values
from rayhelm.deploy.values.common.labels import (
    ExtendedResource,
    LabelKey,
    Labels,
    LabelValue,
    ObjectName,
    Toleration,
)
from rayhelm.deploy.values.common.pods import PodSettings
from rayhelm.deploy.values.ray_service.image import ImageOverride
from rayhelm.deploy.values.ray_service.resources import ContainerResources, build_resources

__all__ = ["HeadPod", "Rdma", "Spread", "WorkerGpu", "WorkerGroup"]


class HeadPod(PodSettings):
    """Head pod. It runs control processes only: it offers no CPU and no GPU to Ray and takes no Serve traffic."""

    resources: ContainerResources = build_resources(cpu="2", memory="8Gi")
    """Resources of the Ray container. Heads with less memory were killed for using more than their limit."""
    shm_size: Quantity = "1Gi"
    """Size of `/dev/shm`, part of the memory limit. Ray's object store uses a quarter of it."""
    cache_size: Quantity = "5Gi"
    """Size of the ephemeral volume for caches."""
    tmp_size: Quantity = "10Gi"
    """Size of the ephemeral volume for Ray's logs and spilled objects. The kubelet evicts a pod that writes more."""
    node_selector: Labels = {}
    """Node labels that the head requires. Keep the head off spot and GPU nodes."""
    tolerations: list[Toleration] = []
    """Tolerations of the head."""
    priority_class_name: ObjectName | Literal[""] = ""
    """PriorityClass of the head, which must exist (chart `platform` creates `rayhelm-head`). Use a higher priority than
    for workers: a Ray cluster without a head cannot scale or recover."""
    termination_grace_period_seconds: Annotated[int, Field(ge=30)] = 60
    """Seconds between SIGTERM and SIGKILL."""
    min_available: Annotated[int, Field(ge=0)] = 0
    """`minAvailable` of the head's PodDisruptionBudget; 0 for no budget. There is one head, so with 1 the drain of its
    node waits until you delete the pod."""
    env: Env = {}
    """Environment variables of the Ray container."""


class WorkerGpu(Values):
    """GPUs of one worker pod."""

    count: Annotated[int, Field(ge=0)] = 1
    """Number of GPUs; 0 for a CPU group."""
    vendor: Literal["nvidia", "amd", "intel"] = "nvidia"
    """Vendor of the GPUs. It sets the default resource name, the toleration and the label of `product`."""
    resource: ExtendedResource | Literal[""] = ""
    """Extended resource. When empty, the one of the vendor: `nvidia.com/gpu`, `amd.com/gpu` or `gpu.intel.com/xe`. The
    chart passes the count to Ray, because KubeRay derives it from some resource names only."""
    product: LabelValue = ""
    """Value of the vendor's product label on the nodes (`kubectl get nodes --show-labels`); any GPU when empty. Intel's
    node feature discovery sets it on Flex and Max GPUs only: select an Arc GPU with `nodeSelector`."""


class Rdma(Values):
    """RDMA device that a device plugin gives to the pod."""

    resource: ExtendedResource | Literal[""] = ""
    """Extended resource, for example `rdma/hca_shared_devices_a`. When empty, NCCL uses sockets. The container runtime
    must allow locked memory, because `restricted` pods cannot add IPC_LOCK."""
    count: Annotated[int, Field(ge=1)] = 1
    """Devices of one pod."""
    hca: str = ""
    """Adapters that NCCL uses (`NCCL_IB_HCA`); all when empty."""


class Spread(Values):
    """Topology spread constraint of the pods."""

    max_skew: Annotated[int, Field(ge=1)] = 1
    """Largest difference in the number of pods between two topology domains."""
    when_unsatisfiable: Literal["ScheduleAnyway", "DoNotSchedule"] = "ScheduleAnyway"
    """What the scheduler does when it cannot satisfy `maxSkew`. With `DoNotSchedule` a replica can wait forever."""


class WorkerGroup(PodSettings):
    """Worker pods of one shape, on one kind of GPU. Each pod offers the Ray resource `<name>.worker-group`."""

    gpu: WorkerGpu = WorkerGpu()
    """GPUs of one pod."""
    min_replicas: Annotated[int, Field(ge=0)] = 1
    """Minimum number of workers. An edit takes effect only with the next Ray cluster."""
    max_replicas: Annotated[int, Field(ge=1)] = 1
    """Maximum number of workers. An edit takes effect only with the next Ray cluster."""
    num_of_hosts: Annotated[int, Field(ge=1)] = 1
    """Pods of one worker, which start and stop together: for a model on several hosts."""
    idle_timeout_seconds: Annotated[int, Field(ge=0)] | None = None
    """Seconds until an idle worker is removed. `autoscaler.idleTimeoutSeconds` when absent."""
    priority: Annotated[int, Field(ge=0)] | None = None
    """Priority of the group for the autoscaler, higher first. Requires KubeRay 1.7.0."""
    resources: ContainerResources
    """Resources of the Ray container."""
    shm_size: Quantity = "8Gi"
    """Size of `/dev/shm`, part of the memory limit. Ray's object store uses a quarter; NCCL and vLLM's queues use the
    rest."""
    cache_size: Quantity = "20Gi"
    """Size of the ephemeral volume for compiled kernels and other caches."""
    tmp_size: Quantity = "10Gi"
    """Size of the ephemeral volume for Ray's logs and spilled objects. The kubelet evicts a pod that writes more."""
    mounts_weights: bool = True
    """Mount the volume and the images with weights, and wait for their download. Off for a group that loads no model,
    for example that of the ingress: its pods may be on any node."""
    image: ImageOverride = ImageOverride()
    """Image of this group, if it differs from `image`."""
    ray_resources: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]+$")], Annotated[int, Field(ge=1)]] = {}
    """Custom Ray resources that each pod offers."""
    supplemental_groups: list[Annotated[int, Field(ge=1, le=2**31 - 1)]] = []
    """Group ids of the node's `video` and `render` groups, which own the device files of AMD and Intel GPUs."""
    network_interface: str = "eth0"
    """Network interface for NCCL and Gloo. In a pod it is `eth0`, whatever its name on the host."""
    rdma: Rdma = Rdma()
    """RDMA device."""
    spot: Literal["", "karpenter", "eks", "gke", "aks"] = ""
    """Run on spot nodes, with the node label and taint of this provider. Empty for on-demand nodes."""
    node_selector: Labels = {}
    """Other node labels that the pods require."""
    tolerations: list[Toleration] = []
    """Other tolerations."""
    spread: dict[LabelKey, Spread] = {}
    """Topology spread constraints by topology key, for example `topology.kubernetes.io/zone`. Pods of another Ray
    cluster during an upgrade do not count. If a replica takes several pods, only `kubernetes.io/hostname` is
    allowed."""
    evictable: bool = False
    """Allow node autoscalers to evict the pods to remove a node. When off, a node is removed only when Ray's autoscaler
    has removed all workers on it. It does not protect against the loss of a spot node."""
    priority_class_name: ObjectName | Literal[""] = ""
    """PriorityClass of the pods, which must exist (chart `platform` creates `rayhelm-workers`)."""
    runtime_class_name: ObjectName | Literal[""] = ""
    """RuntimeClass of the pods: `nvidia` if the default runtime of the node does not provide GPUs."""
    termination_grace_period_seconds: Annotated[int, Field(ge=30)] = 150
    """Seconds between SIGTERM and SIGKILL. Ray drains the worker until 10 seconds before the end, so keep it 10 above
    the largest `gracefulShutdownSeconds`."""
    min_available: Annotated[int, Field(ge=0)] = 1
    """`minAvailable` of the group's PodDisruptionBudget; 0 for no budget. A count, because percentages do not work for
    Ray pods. There is no budget if the smallest number of replicas leaves no pod to evict: no drain could end. Groups
    of the class `rayhelm-batch` have none, because preemption evicts pods without a budget first. Write 0 for another
    class of batch work."""
    env: Env = {}
    """Environment variables of the Ray container."""
