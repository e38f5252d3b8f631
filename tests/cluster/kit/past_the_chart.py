"""Writes RayServices past the chart's refusals, side by side in one namespace: each takes seconds, most of them the
operator's."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import yaml
from pykube.exceptions import HTTPError

from charts.kit import example, over
from cluster.kit.cluster import Cluster, Object
from cluster.kit.endings import Written
from cluster.kit.refused import Case
from rayhelm.deploy.charts.helm import render
from rayhelm.live.cluster.kubectl import KubectlError

__all__ = ["Manuscript", "write"]

MADE = ("ServiceAccount", "ConfigMap", "PodDisruptionBudget", "RayService")
"""What a RayService's pods and budgets need to come into being."""


@dataclass(frozen=True)
class Manuscript:
    """A release that is to be written."""

    name: str
    """Of the release, and by which it is found again."""
    chart: str
    """The chart's name, or the path of one whose refusals are taken out."""
    values: dict[str, Any]
    """Laid over those of `base`."""
    case: Case | None = None
    """What is wrong with it, if anything."""
    base: str = "stand-in"
    """An example of the chart's."""


def write(cluster: Cluster, namespace: str, manuscripts: list[Manuscript]) -> dict[str, Written]:
    """Renders all, then writes all, in their order."""
    with ThreadPoolExecutor(2) as pool:
        rendered = list(pool.map(lambda item: _rendered(item, namespace, cluster.place.kuberay), manuscripts))
    return {
        item.name: _written(cluster, namespace, item.case, objects)
        for item, objects in zip(manuscripts, rendered, strict=True)
    }


JUDGED = {"workerGroups": {"cpu": {"maxReplicas": 2}}, "head": {"minAvailable": 1}}
"""Workers that scale, and a budget: without them the chart has no autoscaler and no budget to judge."""


def _rendered(item: Manuscript, namespace: str, kuberay: str) -> list[Object]:
    values = over(example(item.base), {"kuberay": {"version": kuberay}})
    if item.case:
        values = over(values, JUDGED)
    values = over(values, item.values)
    release = (item.case and item.case.release) or item.name
    objects = [made for made in yaml.safe_load_all(render(item.chart, release, namespace, values)) if made]
    for change in item.case.change if item.case else ():
        change(objects)
    return [made for made in objects if made["kind"] in MADE]


def _written(cluster: Cluster, namespace: str, case: Case | None, objects: list[Object]) -> Written:
    (service,) = (item for item in objects if item["kind"] == "RayService")
    write_one = cluster.apply if case and case.applied else cluster.create
    refusal = ""
    try:
        for item in objects:
            write_one(item)
    except (HTTPError, KubectlError) as error:
        refusal = str(error)
    group = case.group if case else ""
    return Written(cluster, namespace, service["metadata"]["name"], group=group, refusal=refusal)
