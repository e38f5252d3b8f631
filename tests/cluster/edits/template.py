"""Copies of the chart's RayService, and nodes for all of them."""

from collections.abc import Iterable
from typing import Any

import yaml

from cluster.edits.cases import load_base_values
from cluster.kit.cluster import Cluster, Object
from cluster.kit.helm import Helm
from rayhelm.deploy.charts.helm import charts_dir
from testbed.nodes import cpu_nodes, uniform

__all__ = ["build_nodes", "build_objects"]

USERS_SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "token-of-ours"},
    "stringData": {"auth_token": "a token of the user's"},
}


def build_objects(cluster: Cluster, names: Iterable[str]) -> list[Object]:
    """Build RayServices with these names, and the objects that they refer to."""
    helm = Helm.of_major("4", cluster.place.kubeconfig)
    values = yaml.safe_dump(load_base_values(cluster.place.kuberay))
    text = helm(["template", "edited", str(charts_dir() / "ray-service"), "--values=-"], values)
    items: list[Any] = [item for item in yaml.safe_load_all(text) if item]
    for item in items:
        item["metadata"].pop("namespace", None)
    (service,) = [item for item in items if item["kind"] == "RayService"]
    copies = [{**service, "metadata": {**service["metadata"], "name": name}} for name in names]
    return [USERS_SECRET, *(item for item in items if item is not service), *copies]


def build_nodes(services: int) -> list[Object]:
    """Build nodes for three clusters of each service, and one node with a different GPU."""
    return [
        *uniform("L4", nodes=services // 2 + 1, pool="edits"),
        *uniform("T4", nodes=1, per_node=1, pool="edits-one-gpu"),
        *cpu_nodes(services // 8 + 1, cpus=64, memory_gib=256),
    ]
