"""Node labels that select the nodes of each pool and no other nodes with its resource."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations

from rayhelm.facts import load_catalog
from rayhelm.facts.node_labels import load_node_labels
from rayhelm.live.discovery.machine import Machine, Unusable

__all__ = ["Selectors", "has_feature_discovery", "list_provider_labels"]

_PRODUCT = "nvidia.com/gpu.product"
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
_DISCOVERY_DOMAINS = ("nvidia.com", "amd.com", "intel.com", "feature.node.kubernetes.io")
"""Domains of labels that the feature discovery of a vendor sets."""
_MOST_PAIRED = 100
Label = tuple[str, str]


def has_feature_discovery(machines: Sequence[Machine]) -> bool:
    """Return whether GPU feature discovery labels all nodes with NVIDIA's GPUs."""
    return all(machine.labels.get(_PRODUCT) for machine in machines if machine.gpu.vendor == "nvidia")


def _has_product_label(group: Sequence[Machine]) -> bool:
    """Return whether feature discovery labels all of these nodes with the product of their GPU."""
    label = group[0].gpu.product_label
    return bool(label) and all(machine.labels.get(_PRODUCT) == label for machine in group)


class Selectors:
    """Finds labels by an index of the nodes that have them, so that 5,000 nodes take no longer than they must."""

    def __init__(self, groups: Sequence[Sequence[Machine]], unusable: Sequence[Unusable], *, is_labeled: bool) -> None:
        """`is_labeled`: pods select the label of GPU feature discovery without `nodeSelector`."""
        self._groups, self._is_labeled = groups, is_labeled
        self._with_resource: Counter[str] = Counter()
        self._with_label: dict[tuple[str, Label], set[str]] = defaultdict(set)
        for machine in (machine for group in groups for machine in group):
            self._add(machine.name, machine.requests, machine.labels)
        for node in unusable:
            if node.is_permanent:
                self._add(node.name, node.resources, node.labels)

    def _add(self, name: str, resources: frozenset[str], labels: Mapping[str, str]) -> None:
        for resource in resources:
            self._with_resource[resource] += 1
            for key in _list_keys():
                if value := labels.get(key):
                    self._with_label[resource, (key, value)].add(name)

    def find(self, index: int) -> dict[str, str] | None:
        """Return the labels for `nodeSelector` of a group: none where its pods can start on its nodes only. None if
        other nodes have the same labels."""
        group = self._groups[index]
        is_spot = bool(group[0].spot)
        labels = [label for label in _list_common_labels(group) if not (is_spot and _is_set_on_node(label[0]))]
        product = group[0].labels.get(_PRODUCT) if self._is_labeled and not is_spot else None
        if product:
            # Pods select the product of the catalog, and shared and divided GPUs have another one.
            own = {} if product == group[0].gpu.product_label else {_PRODUCT: product}
            more = [label for label in labels if label[0] != _PRODUCT]
            found = self._choose(group, [(_PRODUCT, product)], more)
            return None if found is None else own | found
        if all(self._with_resource[resource] == len(group) for resource in group[0].requests):
            return dict(labels[:1]) if group[0].gpu.vendor == "nvidia" else {}
        return self._choose(group, [], labels)

    def _choose(self, group: Sequence[Machine], given: list[Label], labels: list[Label]) -> dict[str, str] | None:
        """Return the fewest labels that select the group together with the given ones."""
        # Two labels are tried in clusters with few pools only: it takes the square of the nodes.
        most = 2 if len(self._groups) <= _MOST_PAIRED else 1
        for count in range(0 if given else 1, most + 1):
            for chosen in combinations(labels, count):
                if self._selects_only(group, [*given, *chosen]):
                    return dict(chosen)
        return None

    def _selects_only(self, group: Sequence[Machine], labels: Sequence[Label]) -> bool:
        """Return whether no other node has all of these labels, which the group has, and a resource of it."""
        return all(
            len(set.intersection(*(self._with_label[resource, label] for label in labels))) == len(group)
            for resource in group[0].requests
        )


def list_provider_labels(machine: Machine) -> tuple[Label, ...]:
    """Return the names that a provider gives the GPU, where its nodes lack the label of feature discovery: a pool with
    two of them (H100 on A3 High and A3 Mega of GKE) has no label that selects its nodes."""
    if _has_product_label([machine]):
        return ()
    tables = [table for name, table in load_node_labels().items() if not table.decides and name != "instance-types"]
    return tuple(label for table in tables for label in table.list_names(machine.labels))


def _is_set_on_node(key: str) -> bool:
    """Return whether a label is set after the start of a node: an autoscaler adds no spot node for pods that select
    it."""
    return key == "kubernetes.io/hostname" or key.partition("/")[0].endswith(_DISCOVERY_DOMAINS)


def _list_common_labels(group: Sequence[Machine]) -> Iterator[Label]:
    first = group[0]
    for key in _list_keys():
        value = first.labels.get(key)
        if value and all(machine.labels.get(key) == value for machine in group):
            yield key, value


@cache
def _list_keys() -> tuple[str, ...]:
    """Return the keys of labels that can select nodes: those about the GPU first."""
    tables = load_node_labels()
    about = [
        key
        for name, table in tables.items()
        if name != "instance-types"
        for keys in (table.name, table.partition, table.mig_profile, table.sharing)
        for key in keys
        if key != "nvidia.com/gpu.sharing-strategy"
    ]
    intel = [gpu.identifying_label.partition("=")[0] for gpu in load_catalog().gpus() if gpu.vendor == "intel"]
    return tuple(dict.fromkeys([*about, *filter(None, intel), *_GROUP_LABELS]))
