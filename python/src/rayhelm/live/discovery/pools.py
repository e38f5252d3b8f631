"""Group machines into pools that a fleet file can have."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from rayhelm.fleet.pools import Pool
from rayhelm.live.discovery.machine import Machine, Unusable
from rayhelm.live.discovery.selectors import Selectors, has_feature_discovery, list_provider_labels

__all__ = ["FoundPool", "group_machines"]

_ASSUMED_NETWORK = "ethernet-10g"
_ASSUMED_RDMA = "rdma-100g"


@dataclass(frozen=True)
class FoundPool:
    """A pool of the fleet file, and where it comes from."""

    name: str
    fields: Mapping[str, Any]
    """Keys of the pool in the fleet file; `Pool` accepts them."""
    machines: tuple[Machine, ...]
    notes: Mapping[str, str]
    """Comment by key: what a node does not report, or reports differently for some nodes."""


def group_machines(
    machines: Sequence[Machine], cluster: str = "main", unusable: Sequence[Unusable] = ()
) -> list[FoundPool]:
    """Return one pool for each set of machines that a pod of a worker group can run on alike. Its pods do not start on
    `unusable` nodes, if labels differ.

    Machines with RDMA are separated by zone, because their network ends there. Pools are sorted by name."""
    by_key: dict[tuple[Any, ...], list[Machine]] = defaultdict(list)
    for machine in sorted(machines, key=lambda machine: machine.name):
        by_key[_key(machine)].append(machine)
    groups = [tuple(by_key[key]) for key in sorted(by_key, key=repr)]
    selectors = Selectors(groups, unusable, is_labeled=has_feature_discovery(machines))
    pools = [
        _build_pool(name, group, selectors.find(index), cluster)
        for index, (name, group) in enumerate(zip(_choose_names(groups), groups, strict=True))
    ]
    return sorted(pools, key=lambda pool: pool.name)


def _key(machine: Machine) -> tuple[Any, ...]:
    """Return what is equal in all machines of a pool."""
    zone = machine.zone if machine.rdma_resource else ""
    taints = tuple((taint.key, taint.value, taint.effect) for taint in machine.taints)
    return (
        machine.gpu.id,
        machine.gpus,
        machine.resource,
        machine.slices,
        machine.layout,
        machine.labels.get("nvidia.com/gpu.product", ""),
        list_provider_labels(machine),
        machine.spot or "",
        machine.rdma_resource or "",
        zone,
        taints,
    )


def _choose_names(groups: Sequence[tuple[Machine, ...]]) -> list[str]:
    """Name each group after its GPU, and after the difference to other groups with that GPU."""
    alike: dict[str, set[tuple[int, bool, bool]]] = defaultdict(set)
    for group in groups:
        alike[group[0].gpu.id].add(_describe(group[0]))
    names, used = list[str](), Counter[str]()
    for group in groups:
        name = _choose_name(group[0], alike[group[0].gpu.id])
        used[name] += 1
        names.append(f"{name}-{used[name]}" if used[name] > 1 else name)
    return names


def _describe(machine: Machine) -> tuple[int, bool, bool]:
    """Return the number of GPUs, whether the node is a spot node, and whether its GPUs have parts."""
    return machine.gpus, bool(machine.spot), bool(machine.slices or machine.layout)


def _choose_name(first: Machine, alike: Set[tuple[int, bool, bool]]) -> str:
    name = re.sub("[^a-z0-9]+", "-", first.gpu.id.lower()).strip("-")
    gpus, is_spot, has_parts = _describe(first)
    if any(others != gpus for others, _, _ in alike):
        name += f"-x{gpus}"
    if is_spot and any(not spot for _, spot, _ in alike):
        name += "-spot"
    if has_parts and any(not parts for _, _, parts in alike):
        name += "-shared"
    return name


def _build_pool(name: str, group: tuple[Machine, ...], selector: Mapping[str, str] | None, cluster: str) -> FoundPool:
    """`selector`: labels for `nodeSelector`; None if no label of the nodes differs from those of other nodes."""
    first, notes = group[0], dict[str, str]()
    fields: dict[str, Any] = {"gpu": first.gpu.id, "nodes": len(group), "gpusPerNode": first.gpus}
    if first.layout:
        fields["sharing"] = {"layout": dict(first.layout)}
    elif first.slices:
        fields["sharing"] = {"shares": first.slices}
    if first.resource:
        fields["gpuResource"] = first.resource
    if concluded := sorted({machine.note for machine in group if machine.note}):
        notes["gpusPerNode"] = "; ".join(concluded[:3])
    fields["network"] = _ASSUMED_RDMA if first.rdma_resource else _ASSUMED_NETWORK
    notes["network"] = "assumed: nodes do not report their bandwidth. Measure it: rayhelm probe"
    if first.rdma_resource:
        fields["rdmaResource"] = first.rdma_resource
    if cluster != "main":
        fields["cluster"] = cluster
    if first.spot:
        fields["spot"] = first.spot
    if cpus := min(machine.cpus for machine in group):
        fields["cpusPerNode"] = cpus
    if memory := min(machine.memory_gib for machine in group):
        fields["memoryPerNode"] = f"{memory}GiB"
    for key, values in (
        ("cpusPerNode", {machine.cpus for machine in group}),
        ("memoryPerNode", {machine.memory_gib for machine in group}),
    ):
        if len(values) > 1:
            notes[key] = f"the smallest; the largest is {max(values)}"
    if selector:
        fields["nodeSelector"] = dict(selector)
    elif selector is None:
        notes["gpu"] = "other nodes have the same resource and no label differs: label these, and write nodeSelector"
    if first.taints:
        fields["tolerations"] = [
            {"key": taint.key, "effect": taint.effect}
            | ({"operator": "Equal", "value": taint.value} if taint.value else {})
            for taint in first.taints
        ]
    if zones := sorted({machine.zone for machine in group if machine.zone}):
        notes["nodes"] = f"zones: {', '.join(zones)}" if len(zones) > 1 else f"zone {zones[0]}"
    Pool.model_validate(fields)
    return FoundPool(name, fields, group, notes)
