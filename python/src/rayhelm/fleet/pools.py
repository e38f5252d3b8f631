"""Clusters, networks and pools of the fleet file."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.facts.versions import get_kuberay_namespace
from rayhelm.fleet.base import ListOf, Record
from rayhelm.fleet.bucket import Bucket
from rayhelm.fleet.gateway import Gateway
from rayhelm.fleet.labels import FleetImage, GpuResource, Labels, PoolToleration, RdmaResource
from rayhelm.fleet.logs import Logs
from rayhelm.fleet.names import DnsName, Name
from rayhelm.fleet.overrides import ChartValues
from rayhelm.fleet.prometheus import Prometheus
from rayhelm.fleet.ray_images import FleetRayImage
from rayhelm.fleet.redis import Cidr, Redis, SecretKey
from rayhelm.fleet.remotes import RemoteAuthority
from rayhelm.fleet.tracing import Tracing
from rayhelm.fleet.units import Bandwidth, Bytes, Duration, PricePerHour, ReservedBytes

__all__ = ["Cluster", "Host", "Network", "Pool", "Sharing"]


class ApiServer(Record):
    """Addresses of the Kubernetes API server, as pods reach it."""

    cidrs: ListOf[Cidr] = ()
    """CIDRs that the Ray autoscaler may reach. Some network plugins match the address of the Service (`kubectl get
    service kubernetes`), some those of the endpoints (`kubectl get endpointslices -n default`): give both if in
    doubt."""


class Weights(Record):
    """Volume of the model weights, from which servers start without the hub."""

    storage_class: DnsName | None = Field(default=None, examples=["shared-nvme"])
    """Storage class of the volume; default: the one of the cluster."""
    access_mode: Literal["ReadWriteMany", "ReadWriteOnce"] | None = None
    """Pin: `ReadWriteMany` needs a storage class with this mode. Default: `ReadWriteOnce` for a service on a pool
    of one node, or with one pod and no second cluster during upgrades, else `ReadWriteMany`."""
    read_speed: Bandwidth | None = Field(default=None, examples=["2GB/s"])
    """Speed at which one node reads the volume. It decides the load time of a replica and the delays of autoscaling;
    default: an assumption that the plan states, or the speed of a slower `network` of the pool."""
    hub_token: SecretKey | None = None
    """Secret with the token of the hub, for gated models; only the download Job uses it."""
    bucket: Bucket | None = Field(
        default=None, examples=[{"region": "eu-central-1", "credentialsSecret": "bucket-reader"}]
    )
    """Store of the models whose `source` is a bucket."""


class KubeRayOperator(Record):
    """The KubeRay operator."""

    namespace: Name = get_kuberay_namespace()
    """Its namespace: the only one whose pods may connect to the heads, and where Prometheus looks for it. Argo CD
    installs it there (`gitops.operators`)."""


class GpuOperator(Record):
    """NVIDIA's GPU operator."""

    namespace: Name = "gpu-operator"
    """Its namespace, which also has its ConfigMaps."""
    cluster_policy: bool = False
    """The chart `platform` creates the ClusterPolicy; install the chart of NVIDIA with `clusterPolicy.deployCR=false`.
    Default: the chart of NVIDIA creates it and reads the ConfigMaps of rayhelm."""


class RepeatedProbe(Record):
    """A CronJob that repeats `rayhelm probe`."""

    image: FleetImage = Field(examples=[{"repository": "registry.example/team/rayhelm", "tag": "0.2.0"}])
    """Image with the Python package `rayhelm[cluster]`."""
    schedule: str = Field(
        default="0 3 * * 0", pattern=r"^\S+( \S+){4}$|^@(yearly|monthly|weekly|daily|hourly)$", examples=["0 3 * * 0"]
    )
    """Cron expression, in the time zone of the cluster."""
    cpu: bool = False
    """Measure CPUs and the network between them only; requests no GPU."""


class ServeTls(Record):
    """TLS between the gateway and the Serve ports of a cluster. Clients of aliases have to use `https://` then. Each
    service needs a TLS Secret `<service>-serve-tls` in its namespace, with a certificate for
    `<service>-serve-svc.<namespace>.svc.cluster.local`. Ray reads it when a pod starts."""

    certificate_authority: RemoteAuthority = Field(examples=[{"configMap": "serve-ca"}])
    """Certificates that sign those of the services. The gateway sends nothing to a service with another one."""


class Cluster(Record):
    """One Kubernetes cluster."""

    kuberay: Literal["1.7.0", "1.6.2"] = "1.7.0"
    """Version of the KubeRay operator; it decides rules, fields and forecasts."""
    kuberay_operator: KubeRayOperator = KubeRayOperator()
    kubernetes: Literal["1.31", "1.32", "1.33", "1.34", "1.35", "1.36"] = "1.36"
    """Minor version of Kubernetes. Before 1.34, objects are checked against its schemas, and nothing was run; the plan
    says what has no effect there."""
    api_server: ApiServer = ApiServer()
    gateway: Gateway = Gateway()
    serve_tls: ServeTls | None = None
    """TLS between the gateway and the Serve ports; without it these requests are not encrypted. An edit starts new Ray
    clusters."""
    gpu_operator: GpuOperator | None = None
    """Settings of the GPU operator of NVIDIA, for GPU metrics. A pool of NVIDIA GPUs with `sharing` sets it anyway."""
    gpu_feature_discovery: bool | None = Field(default=None, examples=[True])
    """NVIDIA's GPU feature discovery labels the nodes, and pods select their GPU by its label `nvidia.com/gpu.product`,
    except in pools whose nodes start on demand (`nodeStart`, `spot`). The GPU operator runs it; GKE, EKS Auto Mode and
    a device plugin alone do not. `false`: pods select labels of `nodeSelector` only. Default: `true` if the fleet file
    has the GPU operator (`gpuOperator`, `sharing` of NVIDIA GPUs, `gitops.operators`), else `false`."""
    prometheus: Prometheus | None = None
    """Prometheus; without it there are no metrics, and the gateway scales by CPU only."""
    tracing: Tracing | None = None
    """Traces of requests; without it there are none."""
    logs: Logs = Logs()
    redis: Redis | None = None
    """Redis for the fault tolerance of the Ray head; without it the loss of the head restarts the service."""
    weights: Weights = Weights()
    probe: RepeatedProbe | None = Field(
        default=None, examples=[{"image": {"repository": "registry.example/team/rayhelm", "tag": "0.2.0"}}]
    )
    """Repeated measurements of the pools; without it `rayhelm probe` runs when you run it."""
    image: FleetRayImage | None = Field(
        default=None, examples=[{"repository": "registry.example/team/ray-vllm", "tag": "2.60.0-py312"}]
    )
    """Image of heads, and of workers of pools without `image`; default: the stock image of Ray."""
    values: ChartValues = Field(default={}, examples=[{"dashboards": {"kind": "ConfigMap"}}])
    """Overrides: values of the chart `platform` of this cluster, merged last. What the plan decides is refused."""


class Network(Record):
    """A network between hosts that the catalog does not have (it has `rdma-400g`, `ethernet-1g`, `internet` and
    others)."""

    bandwidth: Bandwidth
    """Per host and direction."""
    latency: Duration | None = None
    """One way, between two hosts."""
    rdma: bool = False
    """GPUs reach each other's memory without the CPU (InfiniBand, RoCE)."""
    measured: bool = False
    """The figures were measured, not taken from a data sheet; the plan says so."""


class Host(Record):
    """One host of a pool with `hosts`."""

    gpu: str = Field(min_length=1, examples=["RTX-A5000-24GB"])
    """GPU id of the catalog."""
    gpus: int = Field(default=1, ge=1, le=64, examples=[2])
    """GPUs in the host."""
    name: Name | None = None
    """Name for reasons and worker groups; default: made from pool and index."""
    node_selector: Labels = {}
    """Labels that select this host."""
    values: ChartValues = Field(default={}, examples=[{"env": {"NCCL_SOCKET_IFNAME": "eth1"}}])
    """Overrides, as `values` of the pool and after them, for the pods of this host. Hosts with the same GPU share their
    pods, so only a host with a GPU of its own has some."""


class Sharing(Record):
    """GPUs divided into parts for several services and tenants: `shares`, or `layout`."""

    shares: int | None = Field(default=None, ge=2, le=48, examples=[2])
    """Number of equal parts of each GPU."""
    isolation: Literal["none", "hardware"] = "none"
    """Isolation of the parts. `hardware`: MIG, on GPUs that support it; each part has its own memory and cores. `none`:
    time slices, for services that trust each other; only the settings of vLLM limit the memory of each, and each slows
    the others down."""
    layout: dict[str, Annotated[int, Field(ge=1, le=8)]] = Field(default={}, examples=[{"3g.40gb": 1, "1g.10gb": 3}])
    """Pin: the MIG instances of each GPU by profile, if they are not equal."""


class DaemonSets(Record):
    """Part of a node that its worker pods leave free."""

    cpus: float = Field(default=0.5, ge=0, le=4096, examples=[1.5])
    """CPU cores that DaemonSets request on a node. The default has room for those that a node with GPUs usually runs:
    kube-proxy, network and storage plugins, the device plugin, exporters, a log agent. Write more if other pods run
    there, such as the Ray head (2 CPUs and 8 GiB): `kubectl describe node`, Allocated resources."""
    memory: ReservedBytes | None = Field(default=None, examples=["9GiB"])
    """Memory that they request; default: 1 GiB."""


class Pool(Record):
    """Hosts with GPUs on one network: `gpu`, `nodes` and `gpusPerNode` for equal hosts, `hosts` for different ones."""

    gpu: str | None = Field(default=None, min_length=1, examples=["L4-24GB"])
    """GPU id of the catalog: `H100-SXM-80GB`."""
    nodes: int | None = Field(default=None, ge=1, le=10_000, examples=[4])
    """Hosts in the pool."""
    gpus_per_node: int | None = Field(default=None, ge=1, le=64, examples=[8])
    """GPUs in each host."""
    hosts: ListOf[Host] = Field(default=(), max_length=1000, examples=[[{"gpu": "RTX-A5000-24GB"}]])
    """Different hosts, one by one."""
    sharing: Sharing | None = Field(default=None, examples=[{"shares": 2, "isolation": "hardware"}])
    """Parts of GPUs for several services. Default: a GPU belongs to one service, whose models can share it."""
    gpu_resource: GpuResource | None = Field(default=None, examples=["gpu.intel.com/i915"])
    """Extended resource that the nodes offer these GPUs as, if it is not the usual one: `gpu.intel.com/i915` for an Arc
    B580 with the older kernel driver, `amd.com/spx_nps1`. With `sharing` the nodes are divided already, and the plan
    does not configure them: `nvidia.com/gpu` for time slices and MIG instances that have no resource of their own, as
    on GKE."""
    network: str = Field(default="ethernet-10g", min_length=1, examples=["rdma-400g"])
    """Network between the hosts: one of the catalog or of `networks`."""
    cluster: Name = "main"
    """Cluster that the pool belongs to."""
    price: PricePerHour | None = None
    """Price of one GPU per hour; default: the one of the catalog."""
    spot: Literal["karpenter", "eks", "gke", "aks"] | None = None
    """Spot nodes, which the provider can remove at any time; it decides their labels and taints, and the price."""
    node_start: Duration | None = Field(default=None, examples=["4m"])
    """Time until a cluster autoscaler or Karpenter has added a node, from the pending pod to a running one, with the
    pull of the image. The plan adds it to the load time of replicas; default: the nodes exist."""
    cpus_per_node: float | None = Field(default=None, gt=0, le=4096, examples=[64])
    """CPU cores that pods can use on a node (Allocatable). Worker pods divide them by GPUs, with all their containers
    and without those of `daemonSets`."""
    memory_per_node: Bytes | None = None
    """Memory that pods can use on a node, divided in the same way."""
    daemon_sets: DaemonSets = Field(default=DaemonSets(), examples=[{"cpus": 1}])
    """What `cpusPerNode` and `memoryPerNode` leave to DaemonSets."""
    node_selector: Labels = {}
    """Labels that select the nodes of the pool: those of the node template, where nodes start on demand. Required if
    another pool of the cluster has the same GPU resource, unless both have NVIDIA GPUs of different products and
    `gpuFeatureDiscovery` of the cluster is true, or taints differ."""
    tolerations: ListOf[PoolToleration] = Field(default=(), examples=[[{"key": "example.com/gpu"}]])
    """Tolerations for taints of the nodes, in addition to those of the GPU vendor."""
    image: FleetRayImage | None = Field(
        default=None, examples=[{"repository": "registry.example/team/ray-vllm", "tag": "2.60.0-py312"}]
    )
    """Image of the workers of this pool. AMD and Intel GPUs need their own: the default image is for CUDA."""
    device_groups: ListOf[Annotated[int, Field(ge=1, le=2**31 - 1)]] = Field(default=(), examples=[[44, 109]])
    """Group ids of the device files of AMD and Intel GPUs on the hosts: `stat -c %g /dev/kfd /dev/dri/*`."""
    runtime_class: DnsName | None = Field(default=None, examples=["nvidia"])
    """RuntimeClass of its pods, if the nodes need one for GPUs: k3s has one with the name `nvidia`."""
    rdma_resource: RdmaResource | None = None
    """Extended resource of the RDMA device plugin: `rdma/hca_shared_devices_a`. Required if a replica spans hosts on a
    network with RDMA."""
    values: ChartValues = Field(default={}, examples=[{"shmSize": "16Gi"}])
    """Overrides: keys of `workerGroups.*` of the chart `ray-service`, for the worker groups of this pool, merged last.
    What the plan decides is refused."""
