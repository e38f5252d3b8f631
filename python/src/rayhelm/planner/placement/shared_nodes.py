"""Refuse hosts of a pool that are one node, and settings of a host whose pods can be on another one."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from rayhelm.errors import Fix, FleetError, Problem, Rewrite
from rayhelm.facts import Catalog
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.pools import Pool
from rayhelm.fleet.problems import problem_at

__all__ = ["check_hosts"]

_NODE = "kubernetes.io/hostname"
"""Label that is different for each node."""


def check_hosts(fleet: Fleet, facts: Catalog) -> None:
    """Raise FleetError for each node that several hosts of a pool select, and for `values` of hosts that share pods."""
    problems = [
        problem
        for name, pool in fleet.pools.items()
        for problem in (*_find_shared(name, pool, facts), *_find_shared_values(name, pool))
    ]
    if problems:
        raise FleetError(problems)


def _find_shared(name: str, pool: Pool, facts: Catalog) -> Iterator[Problem]:
    by_node: dict[str, list[int]] = defaultdict(list)
    for index, host in enumerate(pool.hosts):
        if node := {**pool.node_selector, **host.node_selector}.get(_NODE):
            by_node[node].append(index)
    for node, indexes in by_node.items():
        if len(indexes) > 1:
            yield _build_problem(name, pool, node, indexes, facts)


def _find_shared_values(name: str, pool: Pool) -> Iterator[Problem]:
    """Yield a problem for each host with `values` and the GPU of another one: both have one worker group."""
    count = Counter(host.gpu for host in pool.hosts)
    for index, host in enumerate(pool.hosts):
        if host.values and count[host.gpu] > 1:
            message = (
                f"{count[host.gpu]} hosts have the GPU {host.gpu} and share their pods, which can have one setting"
            )
            why = "`values` of the pool are for all of its hosts; or give this host a pool of its own"
            yield problem_at(("pools", name, "hosts", index, "values"), message, Fix.removal("", why))


def _build_problem(name: str, pool: Pool, node: str, indexes: list[int], facts: Catalog) -> Problem:
    hosts = [pool.hosts[index] for index in indexes]
    gpus = sum(host.gpus for host in hosts)
    smallest = min((facts.gpu(host.gpu) for host in hosts), key=lambda gpu: gpu.usable_gib or gpu.memory_gb or 0)
    are_alike = len({facts.gpu(host.gpu).id for host in hosts}) == 1

    def join(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
        first, *others = indexes
        joined = {**listed[first], "gpu": smallest.id, "gpus": gpus}
        return [joined if at == first else host for at, host in enumerate(listed) if at not in others]

    why = "one host" if are_alike else f"one host, planned as {gpus} x {smallest.id}: the larger GPU is used in part"
    titles = " and ".join(f"`{host.name or host.gpu}`" for host in hosts)
    message = (
        f"the hosts {titles} select one node (`{_NODE}: {node}`), which offers its {gpus} GPUs together: a pod requests"
        " a number of them and cannot choose which"
    )
    path = ("pools", name, "hosts")
    return problem_at(path, message, Fix("", why=why, rewrite=Rewrite(path, join)))
