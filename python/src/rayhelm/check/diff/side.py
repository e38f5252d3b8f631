"""One side of a comparison: the releases of a fleet, from a fleet file, a rendered folder, git or a live cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rayhelm.check.forecast.service import LiveService
from rayhelm.deploy.charts.helm import template
from rayhelm.deploy.render.files import Rendered
from rayhelm.deploy.values.ray_service import RayServiceValues

__all__ = ["RAY_SERVICE", "ReleaseKey", "Side", "SideRelease"]

RAY_SERVICE = "ray-service"
ReleaseKey = tuple[str, str, str, str]
"""Cluster, chart, namespace, name. The cluster is empty if it is not known."""
Object = dict[str, Any]


@dataclass(frozen=True)
class SideRelease:
    """One release on one side."""

    chart: str
    name: str
    namespace: str
    cluster: str
    values: Mapping[str, Any] | None
    """Helm values; None for a live cluster."""
    kubernetes: str = ""
    """Version for `helm template --kube-version`."""
    source: str = ""
    """File of the values, for messages."""
    live: LiveService | None = None
    """State of the RayService, if it was read from a cluster."""

    @cached_property
    def objects(self) -> list[Object]:
        """Objects that the chart renders. Raises FleetError with the violated rule."""
        assert self.values is not None
        return template(self.chart, self.name, self.namespace, self.values, kube_version=self.kubernetes)

    @cached_property
    def service(self) -> Object:
        """The RayService of a release of chart `ray-service`."""
        return next(item for item in self.objects if item["kind"] == "RayService")

    @cached_property
    def typed(self) -> RayServiceValues:
        return RayServiceValues.model_validate(self.values)


@dataclass(frozen=True)
class Side:
    """A state of a fleet."""

    label: str
    """What the user named."""
    fleet: str
    """Name of the fleet; empty if it is not known."""
    releases: Mapping[ReleaseKey, SideRelease]
    kuberay: Mapping[str, str]
    """Version of the operator by cluster."""
    rendered: Rendered | None = None
    """Plan and pools; None without a fleet file."""
    notes: tuple[str, ...] = field(default=())
    """What could not be read."""
