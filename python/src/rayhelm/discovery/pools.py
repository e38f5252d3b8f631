"""Group machines into pools that a fleet file can have."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rayhelm.discovery.machine import Machine
from rayhelm.spec.pools import Pool

__all__ = ["FoundPool", "group_machines"]

_ASSUMED_NETWORK = "ethernet-10g"
_ASSUMED_RDMA = "rdma-100g"
_GROUP_LABELS = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/zone",
    "kubernetes.io/hostname",
)
"""Labels that providers set, by how well they name a group of nodes."""


@dataclass(frozen=True)
class FoundPool:
    """A pool of the fleet file, and where it comes from."""

    name: str
    fields: Mapping[str, Any]
    """Keys of the pool in the fleet file; `Pool` accepts them."""
    machines: tuple[Machine, ...]
    notes: Mapping[str, str]
    """Comment by key: what a node does not report, or reports differently for some nodes."""


def group_machines(machines: Sequence[Machine], cluster: str = "main") -> list[FoundPool]:
    """Return one pool for each set of machines that a pod of a worker group can run on alike.

    Machines with RDMA are separated by zone, because their network ends there. Pools are sorted by name."""
    ordered = sorted(machines, key=lambda machine: (repr(_key(machine)), machine.name))
    groups = [tuple(group) for _, group in groupby(ordered, key=_key)]
    names = _choose_names(groups)
    return sorted(
        (
            _build_pool(name, group, [other for other in groups if other is not group], cluster)
            for name, group in zip(names, groups, strict=True)
        ),
        key=lambda pool: pool.name,
    )


def _key(machine: Machine) -> tuple[Any, ...]:
    """Return what is equal in all machines of a pool."""
    zone = machine.zone if machine.rdma_resource else ""
    taints = tuple((taint.key, taint.value, taint.effect) for taint in machine.taints)
    return (
        machine.gpu.id,
        machine.gpus,
        machine.slices,
        machine.layout,
        machine.spot or "",
        machine.rdma_resource or "",
        zone,
        taints,
    )


def _choose_names(groups: Sequence[tuple[Machine, ...]]) -> list[str]:
    """Name each group after its GPU, and after the difference to other groups with that GPU."""
    names: list[str] = []
    for group in groups:
        first = group[0]
        name = re.sub("[^a-z0-9]+", "-", first.gpu.id.lower()).strip("-")
        alike = [other[0] for other in groups if other[0].gpu.id == first.gpu.id]
        if len({machine.gpus for machine in alike}) > 1:
            name += f"-x{first.gpus}"
        if first.spot and any(not machine.spot for machine in alike):
            name += "-spot"
        if (first.slices or first.layout) and any(not (other.slices or other.layout) for other in alike):
            name += "-shared"
        candidate, number = name, 2
        while candidate in names:
            candidate, number = f"{name}-{number}", number + 1
        names.append(candidate)
    return names


def _build_pool(
    name: str, group: tuple[Machine, ...], others: Sequence[tuple[Machine, ...]], cluster: str
) -> FoundPool:
    first, notes = group[0], dict[str, str]()
    fields: dict[str, Any] = {"gpu": first.gpu.id, "nodes": len(group), "gpusPerNode": first.gpus}
    if first.layout:
        fields["sharing"] = {"layout": dict(first.layout)}
    elif first.slices:
        fields["sharing"] = {"shares": first.slices}
    fields["network"] = _ASSUMED_RDMA if first.rdma_resource else _ASSUMED_NETWORK
    notes["network"] = "assumed: nodes do not report their bandwidth. Measure it: rayhelm probe"
    if first.rdma_resource:
        fields["rdmaResource"] = first.rdma_resource
    if cluster != "main":
        fields["cluster"] = cluster
    if first.spot:
        fields["spot"] = first.spot
    fields["cpusPerNode"] = min(machine.cpus for machine in group)
    fields["memoryPerNode"] = f"{min(machine.memory_gib for machine in group)}GiB"
    for key, values in (
        ("cpusPerNode", {machine.cpus for machine in group}),
        ("memoryPerNode", {machine.memory_gib for machine in group}),
    ):
        if len(values) > 1:
            notes[key] = f"the smallest; the largest is {max(values)}"
    if selector := _find_selector(group, others):
        fields["nodeSelector"] = selector
    elif _share_a_resource(first, others):
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


def _share_a_resource(machine: Machine, others: Sequence[tuple[Machine, ...]]) -> list[Machine]:
    """Return machines of other pools on which pods of this one could start: the resource is the same, and no label of
    the GPU's name differs."""
    return [
        other
        for group in others
        for other in group
        if other.gpu.resource == machine.gpu.resource
        and not (machine.gpu.product_label and other.gpu.product_label != machine.gpu.product_label)
    ]


def _find_selector(group: tuple[Machine, ...], others: Sequence[tuple[Machine, ...]]) -> dict[str, str]:
    """Return labels that all machines of the group and no other machine with their resource have; empty if none are
    needed, or if there are none."""
    rivals = _share_a_resource(group[0], others)
    if not rivals:
        return {}
    for key, value in _list_common_labels(group):
        if all(rival.labels.get(key) != value for rival in rivals):
            return {key: value}
    return {}


def _list_common_labels(group: tuple[Machine, ...]) -> Iterator[tuple[str, str]]:
    first = group[0]
    for key in (first.gpu.identifying_label.partition("=")[0], *_GROUP_LABELS):
        value = first.labels.get(key)
        if value and all(machine.labels.get(key) == value for machine in group):
            yield key, value
