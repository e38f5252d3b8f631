"""More nodes of a pool, as the fix of a model that it has too few free GPUs for."""

from itertools import cycle

from rayhelm.errors import Fix
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.inventory import PoolInventory

__all__ = ["add_nodes", "find_largest_host"]


def add_nodes(candidate: Candidate, replicas: int) -> Fix:
    """Return the fix that adds nodes like those of the pool, for so many more replicas."""
    pool, nodes = candidate.split.inventory, _count_nodes(candidate, replicas)
    more = f"{nodes} more node{'s' if nodes > 1 else ''} in pool `{pool.name}`"
    if pool.is_uniform:
        return Fix(f"/pools.{pool.name}.nodes", pool.node_count + nodes, more)
    hosts = [host.model_dump(mode="json", by_alias=True, exclude_defaults=True) for host in pool.pool.hosts]
    like = zip(range(nodes), cycle(candidate.split.hosts))
    added = [{"gpu": host.gpu.id, "gpus": host.gpu_count} for _, host in like]
    return Fix(f"/pools.{pool.name}.hosts", [*hosts, *added], more)


def _count_nodes(candidate: Candidate, replicas: int) -> int:
    split, share = candidate.split, candidate.share
    partitioned = split.inventory.partitioning
    gpus = max(host.gpu_count for host in split.matching_hosts) if partitioned else find_largest_host(split.inventory)
    per_host = max(1, int(1 / share + 1e-9)) * gpus if share < 1 else gpus // split.gpus_per_node
    return replicas * split.nodes if split.nodes > 1 or split.hosts else -(-replicas // max(1, per_host))


def find_largest_host(pool: PoolInventory) -> int:
    """Return GPUs of the host that has most."""
    return max(host.gpu_count for host in pool.hosts)
