"""Build the nodes of a fleet's pools."""

from collections.abc import Iterator
from typing import Any

from rayhelm.errors import FleetError, UsageError
from rayhelm.facts import Catalog, load_catalog
from rayhelm.facts.gpu import GpuKind
from rayhelm.fleet.load import LoadedFleet
from rayhelm.fleet.pools import Pool
from rayhelm.planner.placement.gpu_partitioning import GpuPartitioning, partition_gpus, rename_parts, rename_resource
from testbed.nodes.hosts import GIB, Host, Size, Taint, size_of
from testbed.nodes.labels import labeler, spot_marks
from testbed.nodes.manifest import POOL, node

__all__ = ["cluster_of", "cpu_nodes", "pool_of", "simulated", "uniform"]

WITHOUT_GPUS = "without-gpus"


def simulated(loaded: LoadedFleet, cluster: str = "", facts: Catalog | None = None) -> list[dict[str, Any]]:
    """Return the nodes of one cluster of a fleet, one for each host. `cluster` may be empty if the fleet has one.

    Ray manages shares of a GPU (`gpuFraction`): pods request whole GPUs, and nodes offer whole GPUs. Pools with
    `sharing` offer parts of GPUs, as real nodes do after they are labeled.

    Raises UsageError for a cluster that the fleet does not have, FleetError for GPUs that no chart can request."""
    region, facts, names = cluster_of(loaded, cluster), facts or load_catalog(), set[str]()
    pools = [(name, pool) for name, pool in loaded.fleet.pools.items() if pool.cluster == region]
    return [node(host) for name, pool in pools for host in _list_hosts(name, pool, loaded, facts, names)]


def cpu_nodes(count: int, *, cpus: float = 16, memory_gib: int = 64, region: str = "main") -> list[dict[str, Any]]:
    """Build nodes without GPUs, for heads and download Jobs."""
    size = Size(cpus, memory_gib * GIB)
    return [node(Host(f"{WITHOUT_GPUS}-{index}", WITHOUT_GPUS, size, region)) for index in range(count)]


def uniform(
    gpu: str = "H100-SXM-80GB", nodes: int = 125, per_node: int = 8, *, pool: str = "uniform"
) -> list[dict[str, Any]]:
    """Build equal nodes without a fleet; by default with 1,000 GPUs.

    Raises FleetError for a GPU that the catalog does not know."""
    gpu_kind, like = load_catalog().gpu(gpu), Pool(gpu=gpu, nodes=nodes, gpus_per_node=per_node)
    size, taints = size_of(like, per_node), (_build_taint(gpu_kind),)
    hosts = (
        Host(f"{pool}-{index}", pool, size, "main", gpu_kind=gpu_kind, gpus=per_node, taints=taints)
        for index in range(nodes)
    )
    return [node(host) for host in hosts]


def pool_of(manifest: dict[str, Any]) -> str:
    """Return the pool of a node."""
    return str(manifest["metadata"]["labels"][POOL])


def cluster_of(loaded: LoadedFleet, wanted: str) -> str:
    """Return the name of the cluster; if `wanted` is empty, the only one. Raises UsageError."""
    there = list(loaded.fleet.clusters)
    if wanted in there or (not wanted and len(there) == 1):
        return wanted or there[0]
    asked = f"has no cluster `{wanted}`" if wanted else "has several clusters"
    raise UsageError(f"fleet `{loaded.fleet.fleet}` {asked}; name one of: {', '.join(there)}")


def _list_hosts(name: str, pool: Pool, loaded: LoadedFleet, facts: Catalog, names: set[str]) -> Iterator[Host]:
    for index, (gpu, gpus, own, labels) in enumerate(_list_machines(name, pool)):
        gpu_kind = facts.gpu(gpu)
        if not labeler(gpu_kind.vendor):
            problem = loaded.document.problem(("pools", name), f"no chart requests {gpu_kind.resource} ({gpu_kind.id})")
            raise FleetError(problem)
        spot = spot_marks()[pool.spot] if pool.spot else None
        cut = rename_parts(partition_gpus(name, pool, gpu_kind, facts), pool)
        gpu_kind = rename_resource(gpu_kind, pool)
        yield Host(
            name=_make_unique(own or f"{name}-{index}", names),
            pool=name,
            size=size_of(pool, gpus * sum(count for _, count in cut.parts) if cut else gpus),
            region=pool.cluster,
            gpu_kind=gpu_kind,
            gpus=gpus,
            parts={part.resource: gpus * count for part, count in cut.parts} if cut else {},
            mig=dict(cut.layout) if cut else {},
            slices=cut.slices if cut else 0,
            rdma_resource=pool.rdma_resource,
            labels={
                **pool.node_selector,
                **labels,
                **_choose_label(name, cut),
                **({spot.key: spot.value} if spot else {}),
            },
            taints=(
                _build_taint(gpu_kind),
                *(Taint(spot.key, spot.value) for _ in [0] if spot and spot.tainted),
                *(Taint(item.key, item.value or "", item.effect or "NoSchedule") for item in pool.tolerations),
            ),
        )


def _choose_label(pool: str, cut: GpuPartitioning | None) -> dict[str, str]:
    """Return the node label that selects the sharing of the GPUs, as in NOTES of chart `platform`."""
    if not cut or cut.parts[0][0].vendor != "nvidia":
        return {}
    return {"nvidia.com/mig.config" if cut.layout else "nvidia.com/device-plugin.config": pool}


def _list_machines(name: str, pool: Pool) -> Iterator[tuple[str, int, str | None, dict[str, str]]]:
    """GPU kind, GPU count, own name and labels of each host of a pool."""
    for host in pool.hosts:
        yield host.gpu, host.gpus, host.name, host.node_selector
    if not pool.hosts:
        yield from [(pool.gpu or "", pool.gpus_per_node or 1, None, {})] * (pool.nodes or 1)


def _build_taint(gpu_kind: GpuKind) -> Taint:
    """Return the taint that clouds set on nodes with GPUs, which keeps other pods off."""
    return Taint(gpu_kind.resource, "present")


def _make_unique(name: str, names: set[str]) -> str:
    """Return a unique node name: hosts of two pools can have the same name."""
    while name in names:
        name += "-2"
    names.add(name)
    return name
