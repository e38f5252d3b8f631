"""Clusters, networks and pools: what a team has."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.spec.base import ListOf, Record
from rayhelm.spec.gateway import Gateway
from rayhelm.spec.labels import ExtendedResource, Image, Labels, Toleration
from rayhelm.spec.names import DnsName, Name
from rayhelm.spec.prometheus import Prometheus
from rayhelm.spec.redis import Cidr, Redis, SecretKey
from rayhelm.spec.units import Bandwidth, Bytes, Duration, PricePerHour

__all__ = ["Cluster", "Host", "Network", "Pool", "Sharing"]


class ApiServer(Record):
    """Where the Kubernetes API server listens, as pods see it."""

    cidrs: ListOf[Cidr] = ()
    """Address blocks that Ray's autoscaler may reach. Some networks see the Service's address (`kubectl get service
    kubernetes`), some the endpoints' (`kubectl get endpointslices -n default`): name both where you do not know."""


class Weights(Record):
    """Where model weights lie, so that servers start offline."""

    storage_class: DnsName | None = Field(default=None, examples=["shared-nvme"])
    """Storage class of the volume; the cluster's default when left out."""
    access_mode: Literal["ReadWriteMany", "ReadWriteOnce"] | None = None
    """Pin: ReadWriteMany needs a storage class that has it. Left out: ReadWriteOnce for a service of one pod, which is
    never upgraded beside itself."""
    read_speed: Bandwidth | None = Field(default=None, examples=["2GB/s"])
    """What one node reads from that volume. Decides how long a replica loads, and with it the delays of autoscaling;
    assumed when left out."""
    hub_token: SecretKey | None = None
    """Secret with the hub's token, for gated models; only the download Job sees it."""


class GpuOperator(Record):
    """NVIDIA's GPU operator."""

    namespace: Name = "gpu-operator"
    """Where it runs and reads its ConfigMaps."""
    cluster_policy: bool = False
    """The chart `platform` makes its ClusterPolicy, and NVIDIA's chart is told `clusterPolicy.deployCR=false`. Left
    out: NVIDIA's chart makes it, and is pointed to our ConfigMaps."""


class Cluster(Record):
    """One Kubernetes cluster."""

    kuberay: Literal["1.7.0", "1.6.2"] = "1.7.0"
    """Version of the KubeRay operator: rules, fields and forecasts follow it."""
    kubernetes: Literal["1.34", "1.35", "1.36"] = "1.36"
    """Minor version of Kubernetes."""
    api_server: ApiServer = ApiServer()
    gateway: Gateway = Gateway()
    gpu_operator: GpuOperator | None = None
    """NVIDIA's GPU operator, where it is to be told which metrics of cards are read. Needs no word where a pool of
    NVIDIA cards has `sharing`: it is told then."""
    prometheus: Prometheus | None = None
    """Prometheus; without it nothing is scraped, and the gateway scales on CPU alone."""
    redis: Redis | None = None
    """Fault tolerance of Ray's head; without it a lost head restarts the service."""
    weights: Weights = Weights()
    image: Image | None = Field(
        default=None, examples=[{"repository": "registry.example/team/ray-vllm", "tag": "2.60.0-py312"}]
    )
    """Image of heads, and of workers whose pool names none; the stock image of Ray when left out."""


class Network(Record):
    """A network between hosts, when it is not one of the catalog's (`rdma-400g`, `ethernet-1g`, `internet` …)."""

    bandwidth: Bandwidth
    """Per host and direction."""
    latency: Duration | None = None
    """One way, between two hosts."""
    rdma: bool = False
    """GPUs reach each other's memory without the CPU (InfiniBand, RoCE)."""
    measured: bool = False
    """The figures were measured, not read off a label; the plan says so."""


class Host(Record):
    """One host of a pool of unlike hosts."""

    gpu: str = Field(min_length=1, examples=["RTX-A5000-24GB"])
    """GPU id of the catalog."""
    gpus: int = Field(default=1, ge=1, le=64, examples=[2])
    """Cards of that kind in the host."""
    name: Name | None = None
    """Name for reasons and worker groups; made from the GPU when left out."""
    node_selector: Labels = {}
    """Labels that pick this host."""


class Sharing(Record):
    """Cards cut into parts that services and tenants have side by side: `shares`, or `layout`."""

    shares: int | None = Field(default=None, ge=2, le=48, examples=[2])
    """Equal parts of each card."""
    isolation: Literal["none", "hardware"] = "none"
    """What keeps their users apart. Hardware: MIG, for cards that have it; each part has memory and cores of its own.
    None: time slices, for services that trust each other; nothing but vLLM's own settings bounds what each takes of the
    memory, and all are as fast as their neighbours let them be."""
    layout: dict[str, Annotated[int, Field(ge=1, le=8)]] = Field(default={}, examples=[{"3g.40gb": 1, "1g.10gb": 3}])
    """Pin: the MIG instances of each card, by profile, where they are not alike."""


class Pool(Record):
    """Hosts with GPUs on one network: `gpu`, `nodes` and `gpusPerNode` for like hosts, `hosts` for unlike ones."""

    gpu: str | None = Field(default=None, min_length=1, examples=["L4-24GB"])
    """GPU id of the catalog: `H100-SXM-80GB`."""
    nodes: int | None = Field(default=None, ge=1, le=10_000, examples=[4])
    """Hosts in the pool."""
    gpus_per_node: int | None = Field(default=None, ge=1, le=64, examples=[8])
    """Cards in each host."""
    hosts: ListOf[Host] = Field(default=(), max_length=1000, examples=[[{"gpu": "RTX-A5000-24GB"}]])
    """Unlike hosts, one by one."""
    sharing: Sharing | None = Field(default=None, examples=[{"shares": 2, "isolation": "hardware"}])
    """Parts of cards for several services. Left out: a card belongs to one service, whose models share it."""
    network: str = Field(default="ethernet-10g", min_length=1, examples=["rdma-400g"])
    """Network between the hosts: of the catalog, or one named under `networks`."""
    cluster: Name = "main"
    """Cluster that the pool belongs to."""
    price: PricePerHour | None = None
    """What one GPU costs per hour; the catalog's price when left out."""
    spot: Literal["karpenter", "eks", "gke", "aks"] | None = None
    """Nodes may be taken away at any time; the provider decides their labels and taints, and the spot price counts."""
    cpus_per_node: float | None = Field(default=None, gt=0, le=4096, examples=[64])
    """CPU cores that pods can have on a node; bounds what worker pods ask for."""
    memory_per_node: Bytes | None = None
    """Memory that pods can have on a node."""
    node_selector: Labels = {}
    """Labels that pick the pool's nodes."""
    tolerations: ListOf[Toleration] = Field(default=(), examples=[[{"key": "example.com/gpu"}]])
    """Taints of the pool's nodes, beyond the vendor's own."""
    image: Image | None = Field(
        default=None, examples=[{"repository": "registry.example/team/ray-vllm", "tag": "2.60.0-py312"}]
    )
    """Ray image for this pool (AMD and Intel need their own)."""
    device_groups: ListOf[Annotated[int, Field(ge=1, le=2**31 - 1)]] = Field(default=(), examples=[[44, 109]])
    """Group ids that own the device files of AMD and Intel cards on the hosts: `stat -c %g /dev/kfd /dev/dri/*`."""
    runtime_class: DnsName | None = Field(default=None, examples=["nvidia"])
    """RuntimeClass of its pods, where the nodes do not hand out cards without: k3s has one called `nvidia`."""
    rdma_resource: ExtendedResource | None = None
    """Extended resource of the RDMA device plugin: `rdma/hca_shared_devices_a`."""
