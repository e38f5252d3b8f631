"""More nodes of a pool, as the fix of a model that it has too few free GPUs for."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from math import ceil
from typing import NamedTuple

from rayhelm.errors import Fix, Problem
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.inventory import PoolInventory

__all__ = ["Shortage", "add_nodes", "add_nodes_for_all", "find_largest_host"]


class Shortage(NamedTuple):
    """A model without room, and the replicas that a candidate lacks."""

    problem: Problem
    candidate: Candidate
    replicas: int


def add_nodes_for_all(shortages: Sequence[Shortage]) -> list[Problem]:
    """Return the problems, those of one pool with the nodes that all of them need together."""
    return [_add_for_all(each, shortages) for each in shortages]


def _add_for_all(one: Shortage, shortages: Sequence[Shortage]) -> Problem:
    pool, fix = one.candidate.split.inventory, one.problem.fix
    same = [each for each in shortages if each.candidate.split.inventory is pool]
    if len(same) == 1 or not isinstance(fix, Fix) or fix.path != f"/pools.{pool.name}.nodes":
        return one.problem
    gpus = sum(each.candidate.gpus for each in same) - (pool.gpu_count - pool.used)
    most = max(_count_nodes(each.candidate, each.replicas) for each in same)
    nodes = max(most, ceil(gpus * pool.node_count / pool.gpu_count - 1e-9))
    why = f"{nodes} more nodes in pool `{pool.name}`, for {len(same)} models"
    return replace(one.problem, fix=replace(fix, value=pool.node_count + nodes, why=why))


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
