"""Clusters, networks and pools: what a team has."""

from ipaddress import ip_network
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from rayhelm.closed import ClosedCamel
from rayhelm.spec.names import Name
from rayhelm.spec.units import Bandwidth, Bytes, Duration, PricePerHour

__all__ = ["Cluster", "Host", "Network", "Pool", "SecretKey", "Toleration"]


class SecretKey(ClosedCamel):
    """One key of a Secret that exists already; rayhelm never writes a secret."""

    name: str = Field(min_length=1)
    """Name of the Secret."""
    key: str = Field(min_length=1)
    """Key in it."""


def _cidr(text: str) -> str:
    try:
        return str(ip_network(text))
    except ValueError as error:
        raise ValueError(f"`{text}` is not a CIDR block ({error}); write it like 10.0.0.1/32") from None


class ApiServer(ClosedCamel):
    """Where the Kubernetes API server listens, as pods see it."""

    cidrs: tuple[Annotated[str, AfterValidator(_cidr)], ...] = ()
    """Address blocks that Ray's autoscaler may reach: `kubectl get endpoints kubernetes` tells them."""


class Gateway(ClosedCamel):
    """The one door of a cluster."""

    host: str | None = None
    """Host name that clients use."""


class Redis(ClosedCamel):
    """A Redis that keeps the state of Ray's head, so that a lost head loses no service."""

    address: str
    """`host:port`."""
    password_secret: SecretKey | None = None
    """Secret that holds its password."""


class Weights(ClosedCamel):
    """Where model weights lie, so that servers start offline."""

    storage_class: str | None = None
    """Storage class of the volume; the cluster's default when left out."""
    access_mode: Literal["ReadWriteMany", "ReadWriteOnce"] = "ReadWriteMany"
    """ReadWriteOnce suffices where one node serves."""
    hub_token: SecretKey | None = None
    """Secret with the hub's token, for gated models; only the download Job sees it."""


class Cluster(ClosedCamel):
    """One Kubernetes cluster."""

    kuberay: Literal["1.7.0", "1.6.2"] = "1.7.0"
    """Version of the KubeRay operator: rules, fields and forecasts follow it."""
    kubernetes: Literal["1.34", "1.35", "1.36"] = "1.36"
    """Minor version of Kubernetes."""
    api_server: ApiServer = ApiServer()
    gateway: Gateway = Gateway()
    redis: Redis | None = None
    """Fault tolerance of Ray's head; without it a lost head restarts the service."""
    weights: Weights = Weights()


class Network(ClosedCamel):
    """A network between hosts, when it is not one of the catalogue's (`rdma-400g`, `ethernet-1g`, `internet` …)."""

    bandwidth: Bandwidth
    """Per host and direction."""
    latency: Duration | None = None
    """One way, between two hosts."""
    rdma: bool = False
    """GPUs reach each other's memory without the CPU (InfiniBand, RoCE)."""
    measured: bool = False
    """The figures were measured, not read off a label; the plan says so."""


class Toleration(ClosedCamel):
    """A taint that pods of this pool tolerate."""

    key: str
    operator: Literal["Exists", "Equal"] = "Exists"
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None


class Image(ClosedCamel):
    """A container image; a digest wins over a tag."""

    repository: str
    tag: str | None = None
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")] | None = None


class Host(ClosedCamel):
    """One host of a pool of unlike hosts."""

    gpu: str
    """GPU id of the catalogue."""
    gpus: int = Field(default=1, ge=1, le=64)
    """Cards of that kind in the host."""
    name: Name | None = None
    """Name for reasons and worker groups; made from the GPU when left out."""
    node_selector: dict[str, str] = {}
    """Labels that pick this host."""


class Pool(ClosedCamel):
    """Hosts with GPUs on one network: `gpu`, `nodes` and `gpusPerNode` for like hosts, `hosts` for unlike ones."""

    gpu: str | None = None
    """GPU id of the catalogue: `H100-SXM-80GB`."""
    nodes: int | None = Field(default=None, ge=1, le=10_000, examples=[4])
    """Hosts in the pool."""
    gpus_per_node: int | None = Field(default=None, ge=1, le=64, examples=[8])
    """Cards in each host."""
    hosts: tuple[Host, ...] = ()
    """Unlike hosts, one by one."""
    network: str = "ethernet-10g"
    """Network between the hosts: of the catalogue, or one named under `networks`."""
    cluster: Name = "main"
    """Cluster that the pool belongs to."""
    price: PricePerHour | None = None
    """What one GPU costs per hour; the catalogue's price when left out."""
    spot: Literal["karpenter", "eks", "gke", "aks"] | None = None
    """Nodes may be taken away at any time; the provider decides their labels and taints, and the spot price counts."""
    cpus_per_node: float | None = Field(default=None, gt=0)
    """CPU cores that pods can have on a node; bounds what worker pods ask for."""
    memory_per_node: Bytes | None = None
    """Memory that pods can have on a node."""
    node_selector: dict[str, str] = {}
    """Labels that pick the pool's nodes."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints of the pool's nodes, beyond the vendor's own."""
    image: Image | None = None
    """Ray image for this pool (AMD and Intel need their own)."""
    device_groups: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Group ids that own the device files of AMD and Intel cards on the hosts: `stat -c %g /dev/kfd /dev/dri/*`."""
    rdma_resource: str | None = None
    """Extended resource of the RDMA device plugin: `rdma/hca_shared_devices_a`."""
