"""The examples, rendered for the operator under test."""

from typing import Any

import yaml

from charts.kit import example, over
from cluster.kit.cluster import Object
from rayhelm.deploy.charts.helm import render

__all__ = ["rendered", "values_of"]

OF_1_7_0 = {
    "everything": {
        "suspend": None,
        "upgrade": {"strategy": "NewCluster"},
        "workerGroups": {"fast": {"priority": None}},
    }
}
"""What an older KubeRay does not know or heed, and the chart refuses for it."""


def values_of(name: str, kuberay: str, elsewhere: str) -> dict[str, Any]:
    """For this operator, with the aliases in a namespace that is there."""
    older = OF_1_7_0.get(name, {}) if kuberay < "1.7.0" else {}
    values = over(over(example(name), {"kuberay": {"version": kuberay}}), older)
    aliases = {alias: {"namespace": elsewhere} for alias in values.get("aliases", {})}
    gateways = {"clients": {"namespace": elsewhere}} if aliases else {}
    return dict(over(values, {"aliases": aliases, "networkPolicy": {"allowedGateways": gateways}}))


def rendered(name: str, values: dict[str, Any], namespace: str) -> list[Object]:
    text = render("ray-service", name.rpartition("/")[2], namespace, values)
    return [item for item in yaml.safe_load_all(text) if item]
