"""A small cluster: a few nodes with one GPU each, and values of ray-service that fit there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from charts.kit import example, over
from cluster.kit.cluster import Object
from cluster.kit.place import Testbed
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import parse_fleet
from testbed.nodes import cpu_nodes, simulated, volumes

__all__ = ["Small"]

FLEET = """
fleet: small
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}, weights: {storageClass: NAME}}}
pools: {NAME: {gpu: L4-24GB, nodes: 8, gpusPerNode: 1}}
models: {llama-8b: {source: meta-llama/Llama-3.1-8B-Instruct, unpinnedReason: it is not served}}
"""

AT_ONCE = {
    "upgrade": {"deletionDelaySeconds": 1},
    "serve": {"applications": {"chat": {"models": {"llama-8b": {"gracefulShutdownSeconds": 1}}}}},
}
"""A Ray cluster goes as soon as another one has taken its place."""


@dataclass(frozen=True)
class Small:
    """Eight nodes with an L4, two without GPUs, and volumes of a storage class of its own."""

    name: str

    def machines(self) -> list[Object]:
        loaded = parse_fleet(parse_document(FLEET.replace("NAME", self.name), "fleet.yaml"))
        return [*simulated(loaded), *cpu_nodes(2), *volumes(loaded, count=32)]

    def values(self, place: Testbed, *overlays: Mapping[str, Any]) -> dict[str, Any]:
        """The smallest values, for the operator at hand, with others laid over them."""
        ours = {"kuberay": {"version": place.kuberay}, "weights": {"claim": {"storageClass": self.name}}}
        values = example("minimal")
        for overlay in (AT_ONCE, ours, *overlays):
            values = over(values, overlay)
        return dict(values)
