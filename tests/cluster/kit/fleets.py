"""The reference fleets, planned for the operator under test."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cluster.kit.cluster import Object
from rayhelm.deploy.charts.helm import charts_dir, template
from rayhelm.deploy.render.files import Rendered, render_fleet
from rayhelm.deploy.values.emit import select_changed
from testbed.nodes import cpu_nodes, simulated, volumes

__all__ = ["Fleet", "fleet_clusters", "priority_classes"]

VALUES = charts_dir().parent / "values"


@dataclass(frozen=True)
class Fleet:
    """One Kubernetes cluster of a reference fleet."""

    name: str
    cluster: str

    def __str__(self) -> str:
        return self.name if self.cluster == "main" else f"{self.name}-{self.cluster}"

    @property
    def rendered(self) -> Rendered:
        return rendered_fleet(VALUES / self.name / "fleet.yaml")

    @property
    def services(self) -> list[str]:
        """Those that live in this cluster."""
        return [name for name, plan in self.rendered.plan.services.items() if plan.cluster == self.cluster]

    def values(self, service: str, *, kuberay: str) -> dict[str, Any]:
        """As rendered from the fleet file, but for the operator that is at hand."""
        return {**select_changed(self.rendered.values[service]), "kuberay": {"version": kuberay}}

    def machines(self) -> list[Object]:
        """Its nodes, two more for heads and downloads, volumes for its weights, and the classes that its pods name."""
        loaded = self.rendered.plan.source
        classes = priority_classes(self.rendered, self.cluster)
        return [*simulated(loaded, self.cluster), *cpu_nodes(2), *volumes(loaded, self.cluster), *classes]


def priority_classes(rendered: Rendered, cluster: str = "main") -> list[Object]:
    """Those that pods of the fleet's services name, as the chart platform makes them."""
    (platform,) = (one for one in rendered.releases if (one.chart, one.cluster) == ("platform", cluster))
    objects = template("platform", platform.name, platform.namespace, select_changed(platform.values))
    return [item for item in objects if item["kind"] == "PriorityClass"]


@cache
def rendered_fleet(path: Path) -> Rendered:
    return render_fleet(path)


def fleet_clusters() -> list[Fleet]:
    """Every reference fleet, once for each of its clusters."""
    files = sorted(VALUES.glob("*/fleet.yaml"))
    return [
        Fleet(file.parent.name, cluster) for file in files for cluster in rendered_fleet(file).plan.declared.clusters
    ]
