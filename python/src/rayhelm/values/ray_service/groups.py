"""Pods: the head and the worker groups. Any edit here, but for replica bounds and tolerations, builds a new cluster."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.values.common.base import Env, Quantity, Values
from rayhelm.values.common.labels import (
    ExtendedResource,
    LabelKey,
    Labels,
    LabelValue,
    ObjectName,
    Toleration,
)
from rayhelm.values.ray_service.image import ImageOverride

__all__ = ["HeadPod", "Rdma", "Resources", "Spread", "WorkerGpu", "WorkerGroup"]


class Resources(Values):
    """Limits, and requests of the same size: Ray counts what the limits say."""

    cpu: Quantity
    """CPU cores, whole ones: Ray rounds up."""
    cpu_request: Quantity | Literal[""] = ""
    """Cores that the scheduler sets aside; empty for all of them. With fewer the pod shares the others with its
    neighbours, and is slow when they work."""
    memory: Quantity
    """Memory, `/dev/shm` included."""


class HeadPod(Values):
    """The head pod: control only. It books no CPU and no GPU for Ray work and takes no Serve traffic."""

    resources: Resources = Resources(cpu="2", memory="8Gi")
    """Resources of the Ray container; heads with less memory have run out of it."""
    shm_size: Quantity = "1Gi"
    """Size of `/dev/shm`, out of the memory above; Ray's object store takes a quarter of it."""
    cache_size: Quantity = "5Gi"
    """Disk for caches; lost with the pod."""
    tmp_size: Quantity = "10Gi"
    """Disk for Ray's logs and spilled objects; a pod that writes more is evicted."""
    node_selector: Labels = {}
    """Labels of the nodes for the head; keep it off spot and GPU nodes."""
    tolerations: list[Toleration] = []
    """Tolerations of the head, as Kubernetes spells them."""
    priority_class_name: ObjectName | Literal[""] = ""
    """PriorityClass of the head, which has to exist (chart `platform` makes `rayhelm-head`). Above the workers' one:
    without a head nothing can be managed."""
    termination_grace_period_seconds: Annotated[int, Field(ge=30)] = 60
    """Seconds between SIGTERM and SIGKILL."""
    min_available: Annotated[int, Field(ge=0)] = 1
    """Head pods that a drain has to leave running; 0 for no budget. Always a count: percentages never work on Ray
    pods."""
    env: Env = {}
    """Environment of the Ray container."""


class WorkerGpu(Values):
    """The cards of one worker pod."""

    count: Annotated[int, Field(ge=0)] = 1
    """Cards; 0 for a group without."""
    vendor: Literal["nvidia", "amd", "intel"] = "nvidia"
    """Decides resource name, toleration and the label behind `product`."""
    resource: ExtendedResource | Literal[""] = ""
    """Extended resource; empty takes the vendor's (`nvidia.com/gpu`, `amd.com/gpu`, `gpu.intel.com/xe`). Ray is told
    the count in words, because KubeRay derives it from some names only."""
    product: LabelValue = ""
    """Value of the vendor's product label, as `kubectl get nodes --show-labels` shows it; empty for any card. Intel's
    discovery sets one on Flex and Max cards alone: select an Arc card by a label of `nodeSelector`."""


class Rdma(Values):
    """A fast network device handed to the pod by its device plugin."""

    resource: ExtendedResource | Literal[""] = ""
    """Extended resource (`rdma/hca_shared_devices_a`); empty: NCCL is told to keep to sockets. The runtime has to allow
    locked memory: `restricted` pods cannot ask for IPC_LOCK."""
    count: Annotated[int, Field(ge=1)] = 1
    """Devices of one pod."""
    hca: str = ""
    """`NCCL_IB_HCA`: which adapters NCCL uses; empty for all it finds."""


class Spread(Values):
    """How evenly pods lie over places: zones, hosts, racks."""

    max_skew: Annotated[int, Field(ge=1)] = 1
    """Pods that one place may have more than another."""
    unsatisfiable: Literal["ScheduleAnyway", "DoNotSchedule"] = "ScheduleAnyway"
    """What happens where that cannot be: `DoNotSchedule` lets a replica wait for ever."""


class WorkerGroup(Values):
    """Pods of one shape, on one kind of card. Each offers the Ray resource `<name>.worker-group`."""

    gpu: WorkerGpu = WorkerGpu()
    """The cards of one pod."""
    min_replicas: Annotated[int, Field(ge=0)] = 1
    """Workers that always run. An edit reaches the live cluster only at its next switch."""
    max_replicas: Annotated[int, Field(ge=1)] = 1
    """Most workers. An edit reaches the live cluster only at its next switch."""
    num_of_hosts: Annotated[int, Field(ge=1)] = 1
    """Pods of one worker, started and ended together: a model over several hosts."""
    idle_timeout_seconds: Annotated[int, Field(ge=0)] | None = None
    """Seconds that a worker stays without work; the autoscaler's own when left out."""
    priority: Annotated[int, Field(ge=0)] | None = None
    """Which group the autoscaler prefers, higher first; KubeRay 1.7.0."""
    resources: Resources
    """Resources of the Ray container."""
    shm_size: Quantity = "8Gi"
    """Size of `/dev/shm`, out of the memory above: a quarter for Ray's object store, the rest for NCCL, where cards
    share a host, and for vLLM's queues."""
    cache_size: Quantity = "20Gi"
    """Disk for compiled kernels and other caches; lost with the pod."""
    tmp_size: Quantity = "10Gi"
    """Disk for Ray's logs and spilled objects; a pod that writes more is evicted."""
    image: ImageOverride = ImageOverride()
    """Another image for this group."""
    ray_resources: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]+$")], Annotated[int, Field(ge=1)]] = {}
    """Further Ray resources that each pod offers."""
    supplemental_groups: list[Annotated[int, Field(ge=1, le=2**31 - 1)]] = []
    """Group ids of the node's `video` and `render` groups, which own the device files of AMD and Intel cards."""
    network_interface: str = "eth0"
    """Interface for NCCL and Gloo. Pods have their own `eth0`, whatever the host calls its."""
    rdma: Rdma = Rdma()
    """A fast network device."""
    spot: Literal["", "karpenter", "eks", "gke", "aks"] = ""
    """Runs on nodes that may be taken away, labelled and tainted as this provider does; empty for nodes that stay."""
    node_selector: Labels = {}
    """Further labels of the nodes."""
    tolerations: list[Toleration] = []
    """Further tolerations, as Kubernetes spells them."""
    spread: dict[LabelKey, Spread] = {}
    """Spread over places, by the label of nodes that names the place (`topology.kubernetes.io/zone`). A second cluster
    in an upgrade is counted by itself. Pods of one replica belong together: where it takes several, only over
    `kubernetes.io/hostname`."""
    evictable: bool = False
    """Node autoscalers may move the pods to empty a node. Off: what loads for minutes stays where it is until Ray's own
    autoscaler ends it, so a node goes when it has no replica left. Spot nodes go all the same."""
    priority_class_name: ObjectName | Literal[""] = ""
    """PriorityClass of the pods, which has to exist (chart `platform` makes `rayhelm-workers`)."""
    runtime_class_name: ObjectName | Literal[""] = ""
    """`nvidia` where the node's default runtime does not hand out the cards."""
    termination_grace_period_seconds: Annotated[int, Field(ge=30)] = 150
    """Seconds between SIGTERM and SIGKILL. Ray drains until 10 seconds before the end; keep it above the models'
    `gracefulShutdownSeconds`."""
    min_available: Annotated[int, Field(ge=0)] = 1
    """Pods that a drain has to leave running; 0 for no budget. Always a count."""
    env: Env = {}
    """Environment of the Ray container."""
