"""The RayService of the chart, many times over, and nodes for all of them."""

from collections.abc import Iterable
from typing import Any

import yaml

from cluster.edits.cases import base_values
from cluster.kit.cluster import Cluster, Object
from cluster.kit.helm import Helm
from rayhelm.charts.helm import charts_dir
from testbed.nodes import cpu_nodes, uniform

__all__ = ["machines", "objects"]

USERS_SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "token-of-ours"},
    "stringData": {"auth_token": "a token of the user's"},
}


def objects(cluster: Cluster, names: Iterable[str]) -> list[Object]:
    """RayServices of these names, and what they mention."""
    helm = Helm.of_major("4", cluster.place.kubeconfig)
    values = yaml.safe_dump(base_values(cluster.place.kuberay))
    text = helm(["template", "edited", str(charts_dir() / "ray-service"), "--values=-"], values)
    items: list[Any] = [item for item in yaml.safe_load_all(text) if item]
    for item in items:
        item["metadata"].pop("namespace", None)
    (service,) = [item for item in items if item["kind"] == "RayService"]
    copies = [{**service, "metadata": {**service["metadata"], "name": name}} for name in names]
    return [USERS_SECRET, *(item for item in items if item is not service), *copies]


def machines(services: int) -> list[Object]:
    """Room for three clusters of each, and one card that is not among the others."""
    return [
        *uniform("L4", nodes=services // 2 + 1, pool="edits"),
        *uniform("T4", nodes=1, per_node=1, pool="edits-one-card"),
        *cpu_nodes(services // 8 + 1, cpus=64, memory_gib=256),
    ]
