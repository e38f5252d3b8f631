"""The label of NVIDIA's GPU feature discovery, which pods select only where the nodes are known to have it."""

from rayhelm.facts import Catalog
from rayhelm.facts.gpu import GpuKind
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.pools import Pool

__all__ = ["PRODUCT", "has_feature_discovery", "is_autoscaled", "select_product"]

PRODUCT = "nvidia.com/gpu.product"


def has_feature_discovery(cluster: str, fleet: Fleet, facts: Catalog) -> bool:
    """Return whether GPU feature discovery labels the nodes of a cluster: as the fleet file states, else if it has the
    GPU operator, which runs it."""
    section = fleet.clusters[cluster]
    if section.gpu_feature_discovery is not None:
        return section.gpu_feature_discovery
    is_installed = fleet.gitops is not None and "gpu-operator" in fleet.gitops.operators
    pools = (pool for pool in fleet.pools.values() if pool.cluster == cluster)
    return bool(section.gpu_operator) or is_installed or any(_needs_operator(pool, facts) for pool in pools)


def is_autoscaled(pool: Pool) -> bool:
    """Return whether nodes of the pool are created on demand. An autoscaler knows the labels of its node template only,
    and adds no node for a pod that selects another label."""
    return bool(pool.node_start or pool.spot)


def select_product(pool: Pool, gpu: GpuKind, fleet: Fleet, facts: Catalog) -> str:
    """Return the product that pods of the pool select their nodes by; empty if the label is not known to be there."""
    if gpu.vendor != "nvidia" or is_autoscaled(pool) or not has_feature_discovery(pool.cluster, fleet, facts):
        return ""
    return gpu.product_label or ""


def _needs_operator(pool: Pool, facts: Catalog) -> bool:
    """Return whether the GPU operator of NVIDIA divides the GPUs of the pool."""
    return bool(pool.sharing and not pool.gpu_resource and pool.gpu) and facts.gpu(pool.gpu or "").vendor == "nvidia"
