"""Which nodes of a cluster a pool of the fleet file has, and which of them can be measured now."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rayhelm.facts import Catalog
from rayhelm.fleet.pools import Pool
from rayhelm.live.discovery.machine import Machine, read_machine

__all__ = ["FoundNode", "find_nodes"]


@dataclass(frozen=True)
class FoundNode:
    """A node of a pool."""

    name: str
    gpus: int
    why_not: str = ""
    """Why it cannot be measured; empty if it can."""


def find_nodes(pool: Pool, nodes: Iterable[Mapping[str, Any]], facts: Catalog, *, on_cpu: bool) -> list[FoundNode]:
    """Return the nodes that the selectors of the pool match; without selectors, those with its GPUs."""
    found = []
    for node in nodes:
        labels = node["metadata"].get("labels") or {}
        # Its kind does not depend on whether pods can start on it now.
        healthy = {**node, "spec": {}, "status": {**(node.get("status") or {}), "conditions": []}}
        machine = read_machine(healthy, facts)
        gpus = machine.gpus if isinstance(machine, Machine) else 0
        if not _has_node(pool, labels, machine.gpu.id if isinstance(machine, Machine) else "", gpus, facts):
            continue
        why_not = _find_hindrance(node)
        if not why_not and not on_cpu and not gpus:
            why_not = "it offers no GPU that the catalog knows; rayhelm discover says why"
        found.append(FoundNode(node["metadata"]["name"], gpus, why_not))
    return sorted(found, key=lambda each: each.name)


def _has_node(pool: Pool, labels: Mapping[str, str], gpu: str, gpus: int, facts: Catalog) -> bool:
    selectors = [{**pool.node_selector, **host.node_selector} for host in pool.hosts] or [dict(pool.node_selector)]
    if any(selector and selector.items() <= labels.items() for selector in selectors):
        return True
    if any(selectors) or not gpu:
        return False
    kinds = {(facts.gpu(host.gpu).id, host.gpus) for host in pool.hosts}
    if pool.gpu:
        kinds = {(facts.gpu(pool.gpu).id, pool.gpus_per_node or 1)}
    return (gpu, gpus) in kinds


def _find_hindrance(node: Mapping[str, Any]) -> str:
    conditions = (node.get("status") or {}).get("conditions") or []
    ready = next((item for item in conditions if item["type"] == "Ready"), None)
    if ready and ready["status"] != "True":
        return f"the node is not Ready ({ready.get('reason', 'no reason given')})"
    return "the node is cordoned" if (node.get("spec") or {}).get("unschedulable") else ""
