"""Refuse pools whose nodes the scheduler cannot distinguish.

Pods request an extended resource. Pools with the same resource differ only by node labels and taints: those of the
fleet file, and the product label of NVIDIA's GPU feature discovery where it runs. Runs after all models are placed: a
pool without pods may have the labels of another one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rayhelm.errors import Fix, Problem, Rewrite
from rayhelm.facts import Catalog
from rayhelm.facts.gpu import GpuKind
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.pools import Pool
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.placement.feature_discovery import (
    PRODUCT,
    has_feature_discovery,
    is_autoscaled,
    select_product,
)
from rayhelm.planner.placement.inventory import PoolInventory
from rayhelm.planner.plan import ModelPlan

__all__ = ["find_shared_nodes"]

_POOL = "rayhelm.dev/pool"
"""Label that is offered where the catalog has none."""


@dataclass(frozen=True)
class _NodeKind:
    """Nodes of a pool with one kind of GPU, as the scheduler sees them."""

    name: str
    pool: Pool
    gpu: GpuKind
    resources: frozenset[str]
    labels: Mapping[str, str]
    """Labels that its pods require."""
    found: Mapping[str, str]
    """Labels that its nodes are known to have."""
    hosts: tuple[int, ...]
    """Indexes of its hosts in a pool of different hosts; else empty."""

    @property
    def title(self) -> str:
        return f"`{self.name}` ({self.gpu.of or self.gpu.id})"


def find_shared_nodes(
    plans: Mapping[str, ModelPlan], inventories: Mapping[str, PoolInventory], fleet: Fleet, facts: Catalog
) -> Iterator[Problem]:
    """Yield a problem of each used pool whose pods can start on nodes of another pool, or of another GPU."""
    used = {plan.pool for plan in plans.values()}
    kinds = [kind for inventory in inventories.values() for kind in _list_kinds(inventory, fleet, facts)]
    for kind in kinds:
        rivals = [other for other in kinds if other is not kind and _can_start(kind, other)]
        if kind.name in used and rivals:
            yield _build_problem(kind, rivals, fleet, facts)


def _list_kinds(inventory: PoolInventory, fleet: Fleet, facts: Catalog) -> Iterator[_NodeKind]:
    """Yield one kind for equal hosts, or one for each GPU of different ones."""
    pool = inventory.pool
    by_gpu: dict[str, list[int]] = {}
    for index in range(len(pool.hosts)):
        by_gpu.setdefault(inventory.hosts[index].gpu.id, []).append(index)
    for indexes in by_gpu.values() or [[]]:
        hosts = [inventory.hosts[index] for index in indexes] or inventory.hosts
        selectors = [set(pool.hosts[index].node_selector.items()) for index in indexes]
        common = dict(sorted(set.intersection(*selectors))) if selectors else {}
        gpu = hosts[0].gpu
        product = select_product(pool, gpu, fleet, facts)
        spot = {"spot": pool.spot} if pool.spot else {}
        resources = frozenset(host.gpu.resource for host in hosts)
        labels = {**({PRODUCT: product} if product else {}), **spot, **pool.node_selector, **common}
        # Nodes that start on demand get the product later, and then pods of other pools can start there.
        known = {PRODUCT: gpu.product_label} if gpu.vendor == "nvidia" and gpu.product_label else {}
        yield _NodeKind(inventory.name, pool, gpu, resources, labels, {**known, **labels}, tuple(indexes))


def _can_start(kind: _NodeKind, other: _NodeKind) -> bool:
    """Return whether pods of a kind can start on the nodes of another one."""
    return (
        kind.pool.cluster == other.pool.cluster
        and bool(kind.resources & other.resources)
        and all(other.found.get(key) == value for key, value in kind.labels.items())
        and not _has_other_taint(kind, other)
    )


def _has_other_taint(kind: _NodeKind, other: _NodeKind) -> bool:
    """Return whether the nodes of `other` have a taint that pods of `kind` do not tolerate. A pool tolerates what its
    nodes are tainted with; AKS taints spot nodes."""
    if other.pool.spot == "aks" and kind.pool.spot != "aks":
        return True
    keys = {(item.key, item.value) for item in kind.pool.tolerations}
    return any((item.key, item.value) not in keys for item in other.pool.tolerations)


def _build_problem(kind: _NodeKind, rivals: Sequence[_NodeKind], fleet: Fleet, facts: Catalog) -> Problem:
    others = " and ".join(dict.fromkeys(rival.title for rival in rivals))
    resource = sorted(kind.resources & rivals[0].resources)[0]
    message = (
        f"pods of {kind.title} can also start on nodes of {others}: both offer `{resource}`, and no label of"
        f" `nodeSelector` distinguishes them{_explain_product(kind, rivals, fleet, facts)}"
    )
    label, why = _choose_label(kind, rivals)
    within = any(rival.name == kind.name for rival in rivals)
    if not within:
        fix = Fix("nodeSelector", {**kind.pool.node_selector, **label}, why)
        return problem_at(("pools", kind.name), message, fix)
    path = ("pools", kind.name, "hosts")
    labeled = Rewrite(
        path, lambda hosts: [_label(host, label, index in kind.hosts) for index, host in enumerate(hosts)]
    )
    return problem_at(path, message, Fix("", why=why, rewrite=labeled))


def _explain_product(kind: _NodeKind, rivals: Sequence[_NodeKind], fleet: Fleet, facts: Catalog) -> str:
    """Return why pods do not select the product, where it would distinguish the nodes."""
    own = kind.gpu.product_label
    if kind.gpu.vendor != "nvidia" or not own or any(rival.gpu.product_label in (None, own) for rival in rivals):
        return ""
    if not has_feature_discovery(kind.pool.cluster, fleet, facts):
        return (
            f". Pods select `{PRODUCT}` where GPU feature discovery runs, as the GPU operator does; then"
            f" `gpuFeatureDiscovery: true` of cluster `{kind.pool.cluster}` is enough"
        )
    return f". Nodes that start on demand do not have `{PRODUCT}` before" if is_autoscaled(kind.pool) else ""


def _label(host: dict[str, Any], label: dict[str, str], is_of_kind: bool) -> dict[str, Any]:
    """Return a host of the fleet file, with the label if it is of the kind."""
    return {**host, "nodeSelector": {**(host.get("nodeSelector") or {}), **label}} if is_of_kind else host


def _choose_label(kind: _NodeKind, rivals: Sequence[_NodeKind]) -> tuple[dict[str, str], str]:
    """Return the label of feature discovery for this GPU, or one of the pool if rivals have the same GPU."""
    found = kind.gpu.identifying_label
    if found and all(rival.gpu.identifying_label != found for rival in rivals):
        key, _, value = found.partition("=")
        source = "AMD's node labeller" if kind.gpu.vendor == "amd" else "node feature discovery with Intel's rules"
        return {key: value}, f"set by {source}"
    name = f"{kind.name}-{kind.hosts[0]}" if kind.hosts else kind.name
    if is_autoscaled(kind.pool):
        return {_POOL: name}, "write it into the template of these nodes, or use a label that is there already"
    return {_POOL: name}, f"kubectl label nodes NODE... {_POOL}={name}, or a label that these nodes have already"
