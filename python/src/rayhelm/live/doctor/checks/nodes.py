"""The nodes of each pool are there, Ready, offer their GPUs, and are alike: driver, CUDA, kubelet and RDMA."""

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rayhelm.facts.quantities import parse_quantity
from rayhelm.live.cluster.kinds import NODES
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts, Object, find_condition, labels_of
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity, name_object

if TYPE_CHECKING:
    from rayhelm.facts.gpu import GpuKind

_ALIKE = {
    "nvidia.com/cuda.driver-version.full": "driver",
    "nvidia.com/cuda.runtime-version.full": "CUDA that the driver supports",
    "nvidia.com/mig.strategy": "MIG strategy",
    "nvidia.com/gpu.sharing-strategy": "GPU sharing",
    "feature.node.kubernetes.io/pci-15b3.present": "RDMA device (Mellanox)",
    "beta.amd.com/gpu.driver-version": "AMD driver",
}
"""Labels of feature discovery that the nodes of one pool should share; a node without the label is not compared."""
_PRODUCT = "nvidia.com/gpu.product"


def _find(facts: Facts) -> Iterator[Finding]:
    nodes = facts.get_all(NODES)
    yield from find_in_each(nodes, _find_node_problem)
    pools = _group(nodes, facts)
    for pool, members in pools.items():
        yield from _find_differences(pool, members)
    yield from _find_missing_nodes(pools, facts)
    yield from _find_missing_rdma(pools, facts)


def _find_missing_rdma(pools: dict[str, list[Object]], facts: Facts) -> Iterator[Finding]:
    """Find nodes without the RDMA resource of their pool: pods that ask for it are not scheduled on them."""
    for name, pool in facts.rendered.plan.declared.pools.items() if facts.rendered else ():
        resource = pool.rdma_resource
        for node in pools.get(name, []) if resource else []:
            offered = (node.get("status", {}).get("allocatable") or {}).get(resource, "0")
            if offered == "0":
                yield Finding(
                    object=name_object(node),
                    evidence=f"allocatable has no {resource}, which pool {name} has in the fleet file",
                    cause="the RDMA device plugin does not run on this node, or its network interface is down: pods"
                    " that span"
                    " nodes are not scheduled here",
                    fix=f"kubectl get pods -A --field-selector spec.nodeName={node['metadata']['name']} | grep -i rdma",
                )


def _find_node_problem(node: Object) -> Iterator[Finding]:
    name, allocatable = node["metadata"]["name"], node.get("status", {}).get("allocatable") or {}
    has_gpu_label = labels_of(node).get("nvidia.com/gpu.present") == "true"
    ready = find_condition(node, "Ready")
    if ready.get("status") != "True" and (has_gpu_label or _gpus(node)):
        yield Finding(
            object=name_object(node),
            evidence=f"Ready is {ready.get('status', 'not set')}: {ready.get('message', '')}"[:300].rstrip(": "),
            cause="the kubelet of this node with GPUs does not report, so its pods are moved or wait",
            fix=f"kubectl describe node {name}",
        )
    elif has_gpu_label and not any(_is_gpu(key) and parse_quantity(value) > 0 for key, value in allocatable.items()):
        yield Finding(
            object=name_object(node),
            evidence=f"label nvidia.com/gpu.present is true, and allocatable has no GPU ({_PRODUCT}:"
            f" {labels_of(node).get(_PRODUCT, 'not set')})",
            cause="the device plugin does not run on this node, or the driver does not load: no pod gets its GPUs",
            fix=f"kubectl get pods -n gpu-operator --field-selector spec.nodeName={name}",
        )


def _find_differences(pool: str, members: list[Object]) -> Iterator[Finding]:
    for label, what in _ALIKE.items():
        by_value: dict[str, list[str]] = defaultdict(list)
        for node in members:
            if value := labels_of(node).get(label):
                by_value[value].append(node["metadata"]["name"])
        if len(by_value) > 1:
            parts = [f"{value} on {', '.join(sorted(names)[:4])}" for value, names in sorted(by_value.items())]
            fewest = sorted(min(by_value.values(), key=lambda names: len(list(names))))
            yield Finding(
                object=f"pool {pool}",
                evidence=f"{label}: {'; '.join(parts)}",
                cause=f"the nodes of the pool differ in their {what}: a model runs on one and fails on the other, and"
                " one"
                " that spans nodes can hang",
                fix=f"kubectl cordon {fewest[0]}    # upgrade it to the version of the others, then: kubectl uncordon",
            )


def _find_missing_nodes(pools: dict[str, list[Object]], facts: Facts) -> Iterator[Finding]:
    if not facts.rendered:
        return
    for name, pool in facts.rendered.plan.declared.pools.items():
        wanted = len(pool.hosts) or pool.nodes or 1
        found = pools.get(name, [])
        is_known = all(_selectors(facts).get(name, []))
        if pool.cluster == facts.region and is_known and len(found) < wanted and not pool.spot:
            yield Finding(
                object=f"pool {name}",
                evidence=f"{len(found)} of {wanted} nodes have its labels:"
                f" {', '.join(sorted(node['metadata']['name'] for node in found)) or 'none'}",
                cause="the plan places models on nodes that are not in the cluster, or that have other labels",
                fix=f"kubectl get nodes -L {_PRODUCT},kubernetes.io/hostname    # add or label the nodes, or correct"
                f" pools.{name} in the fleet file",
            )


def _group(nodes: list[Object], facts: Facts) -> dict[str, list[Object]]:
    """Nodes by pool of the fleet; without a fleet, by GPU."""
    if not facts.rendered:
        groups: dict[str, list[Object]] = defaultdict(list)
        for node in nodes:
            if product := labels_of(node).get(_PRODUCT):
                groups[product].append(node)
        return groups
    return {
        name: [node for node in nodes if _matches(node, selectors)] for name, selectors in _selectors(facts).items()
    }


def _selectors(facts: Facts) -> dict[str, list[dict[str, str]]]:
    """Node labels of each host of each pool, as the pods select them."""
    from rayhelm.planner.placement.feature_discovery import has_feature_discovery

    assert facts.rendered
    fleet = facts.rendered.plan.declared
    known, found = fleet.facts, {}
    for name, pool in fleet.pools.items():
        if pool.cluster != facts.region:
            continue
        # Also for autoscaled pools: their pods do not select the label, and their nodes get it after the start.
        is_labeled = has_feature_discovery(pool.cluster, fleet, known)
        kinds = [(host.gpu, host.node_selector) for host in pool.hosts] or [(pool.gpu or "", {})]
        found[name] = [
            {**_label_gpu(known.gpu(gpu), is_labeled=is_labeled), **pool.node_selector, **own} for gpu, own in kinds
        ]
    return found


def _label_gpu(gpu: "GpuKind", *, is_labeled: bool) -> dict[str, str]:
    """Return the label that only nodes with this GPU have; empty if it is unknown. `is_labeled`: GPU feature discovery
    labels nodes."""
    if gpu.vendor == "nvidia":
        return {_PRODUCT: gpu.product_label} if is_labeled and gpu.product_label else {}
    key, _, value = gpu.identifying_label.partition("=")
    return {key: value} if key else {}


def _matches(node: Object, selectors: list[dict[str, str]]) -> bool:
    labels = labels_of(node)
    # Time-sliced GPUs have a suffix, unless their resource is renamed.
    labels = {**labels, _PRODUCT: labels.get(_PRODUCT, "").removesuffix("-SHARED")}
    return any(selector and selector.items() <= labels.items() for selector in selectors)


def _gpus(node: Object) -> int:
    return sum(
        int(parse_quantity(value))
        for key, value in (node.get("status", {}).get("capacity") or {}).items()
        if _is_gpu(key)
    )


def _is_gpu(resource: str) -> bool:
    return resource.endswith(("/gpu", "/gpu.shared")) or "/mig-" in resource or resource.startswith("gpu.intel.com/")


CHECK = Check(
    title="nodes, GPUs and drivers",
    severity=Severity.critical,
    find=_find,
    reads=(NODES,),
)
